"""Groups that are on the way: what is known of each from its start until it ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from atropos_tui.ledger.events import (
    CallFinished,
    CallStarted,
    GroupEnqueued,
    GroupFailed,
    GroupMove,
    GroupRefused,
    GroupScored,
    GroupSkipped,
    GroupStageChanged,
    GroupStarted,
)
from atropos_tui.ledger.outcomes import Stage
from atropos_tui.monitor.bounded_text import (
    BODY_LENGTH,
    ERROR_LENGTH,
    ITEM_LENGTH,
    TRACEBACK_LENGTH,
    bounded_tail,
    bounded_text,
    one_line,
)
from atropos_tui.monitor.group_detail import CallRow
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.score_statistics import finite
from atropos_tui.monitor.snapshot import EndedRow, InFlightRow

MAX_TRACKED = 20_000
MAX_ROWS = 200
MAX_SCORES = 64
# Requests of one group that are kept; of an agent that makes more, the newest.
MAX_CALLS = 64
_MAX_FINISHES = 8
_FINISH_LENGTH = 40


@dataclass(slots=True)
class OpenGroup:
    """Times are monotonic seconds. `completions_out` are those asked for and not yet back, over all calls.

    Calls to auxiliary servers are among the calls; what they complete is no rollout.
    """

    group_id: int
    item: str
    rollouts: int
    step: int
    started: float
    stage: Stage = Stage.COLLECTING
    calls: int = 0
    completions_out: int = 0
    completions_back: int = 0
    generated_tokens: int = 0
    server: int = -1
    scores: tuple[float, ...] = ()
    completion_tokens: tuple[int, ...] = ()
    weight_version: int | None = None
    enqueued: float | None = None
    has_content: bool = False
    finished_calls: list[CallRow] = field(default_factory=list)
    calls_back: int = 0
    finishes: dict[str, None] = field(default_factory=dict)

    @property
    def rollouts_done(self) -> int:
        """Rollouts that wait for no completion; with several turns it falls back when the next turn is asked for."""
        return max(0, min(self.completions_back, self.rollouts - self.completions_out))

    def note_completions(self, event: CallFinished) -> None:
        self.completions_out = max(0, self.completions_out - event.n)
        if not event.error:
            self.completions_back += event.n
            self.generated_tokens += event.completion_tokens
        self.note_finishes(event.finish_reasons)

    def note_call(self, event: CallFinished) -> None:
        self.calls_back += 1
        self.finished_calls.append(call_row(event))
        if len(self.finished_calls) > MAX_CALLS:
            del self.finished_calls[0]

    def note_finishes(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            if reason and len(self.finishes) < _MAX_FINISHES:
                self.finishes[bounded_text(reason, _FINISH_LENGTH)] = None


@dataclass(frozen=True, slots=True)
class EndedGroup:
    """A group's line, its newest requests, and at length what broke or what the trajectory API answered."""

    row: EndedRow
    error: str = ""
    traceback: str = ""
    body: str = ""
    calls: tuple[CallRow, ...] = ()
    earlier_calls: int = 0


@dataclass(slots=True)
class OpenGroups:
    """Follows at most `MAX_TRACKED` groups; one beyond that still counts, but its line stays bare when it ends."""

    _groups: dict[int, OpenGroup] = field(default_factory=dict)
    _outbox: dict[int, OpenGroup] = field(default_factory=dict)

    def handlers(self) -> Handlers:
        return {
            GroupStarted: self._started,
            GroupStageChanged: self._stage_changed,
            CallStarted: self._call_started,
            CallFinished: self._call_finished,
            GroupScored: self._scored,
            GroupEnqueued: self._enqueued,
        }

    def note_content(self, group_id: int, finishes: Iterable[str] = ()) -> None:
        if (group := self._groups.get(group_id)) is not None:
            group.has_content = True
            group.note_finishes(finishes)

    def rows(self, now: Instant) -> tuple[InFlightRow, ...]:
        """The longest in flight first, at most `MAX_ROWS`."""
        return tuple(
            InFlightRow(
                group_id=group.group_id,
                item=group.item,
                stage=group.stage,
                started_at=now.at(group.started),
                rollouts=group.rollouts,
                rollouts_done=group.rollouts_done,
                completion_tokens=group.generated_tokens,
                calls=group.calls,
                server=group.server,
            )
            for group in islice(self._groups.values(), MAX_ROWS)
        )

    def oldest_in_outbox(self) -> float | None:
        """When the group that waits longest was written to the outbox, on the monotonic clock."""
        return next((group.enqueued for group in self._outbox.values()), None)

    def end(self, event: GroupMove, at: float) -> EndedGroup:
        """Stop following a group; `at` is the Unix time of its end."""
        group = self._groups.pop(event.group_id, None) or self._outbox.pop(event.group_id, None)
        group = group or OpenGroup(event.group_id, item="", rollouts=0, step=0, started=event.mono)
        wrong = _what_was_wrong(event)
        row = EndedRow(
            group_id=event.group_id,
            at=at,
            outcome=event.outcome,
            reason=event.reason_word,
            split=(event.split or "") if isinstance(event, GroupSkipped) else "",
            item=group.item,
            scores=group.scores,
            completion_tokens=group.completion_tokens,
            step=group.step,
            seconds=round(event.mono - group.started, 3),
            weight_version=group.weight_version,
            has_content=group.has_content,
            error=one_line(wrong, ERROR_LENGTH),
            finishes=tuple(sorted(group.finishes)),
        )
        return EndedGroup(
            row,
            error=bounded_text(wrong, BODY_LENGTH),
            traceback=bounded_tail(event.traceback, TRACEBACK_LENGTH) if isinstance(event, GroupFailed) else "",
            body=bounded_text(event.body, BODY_LENGTH) if isinstance(event, GroupRefused) else "",
            calls=tuple(group.finished_calls),
            earlier_calls=group.calls_back - len(group.finished_calls),
        )

    def _started(self, event: GroupStarted) -> None:
        if event.group_id in self._groups or len(self._groups) + len(self._outbox) >= MAX_TRACKED:
            return
        self._groups[event.group_id] = OpenGroup(
            event.group_id, one_line(event.item, ITEM_LENGTH), event.rollouts, event.step, event.mono
        )

    def _stage_changed(self, event: GroupStageChanged) -> None:
        if (group := self._groups.get(event.group_id)) is not None:
            group.stage = event.stage

    def _call_started(self, event: CallStarted) -> None:
        if event.group_id is not None and (group := self._groups.get(event.group_id)) is not None:
            group.calls += 1
            group.completions_out += 0 if event.auxiliary else event.n
            group.server = event.server

    def _call_finished(self, event: CallFinished) -> None:
        if event.group_id is not None and (group := self._groups.get(event.group_id)) is not None:
            if not event.auxiliary:
                group.note_completions(event)
            group.note_call(event)

    def _scored(self, event: GroupScored) -> None:
        if (group := self._groups.get(event.group_id)) is not None:
            group.scores = finite(event.scores[:MAX_SCORES])
            group.completion_tokens = event.completion_tokens[:MAX_SCORES]
            group.weight_version = event.weight_version
            group.note_finishes(["length"] if event.truncated else ())

    def _enqueued(self, event: GroupEnqueued) -> None:
        if (group := self._groups.pop(event.group_id, None)) is not None:
            group.enqueued = event.mono
            self._outbox[event.group_id] = group


def call_row(event: CallFinished) -> CallRow:
    return CallRow(
        server=event.server,
        at=event.wall,
        n=event.n,
        latency=event.latency,
        prompt_tokens=event.prompt_tokens,
        completion_tokens=event.completion_tokens,
        finish_reasons=event.finish_reasons,
        weight_version=event.weight_version,
        error=bounded_text(event.error, ERROR_LENGTH),
        rollout=event.rollout,
    )


def _what_was_wrong(event: GroupMove) -> str:
    if isinstance(event, GroupFailed):
        return event.error
    if isinstance(event, GroupSkipped):
        return event.detail
    if isinstance(event, GroupRefused):
        return f"HTTP {event.status}: {event.body}"
    return ""
