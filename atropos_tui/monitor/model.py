"""The model of a run: events folded in, snapshots out. Pure, of bounded size, and knows no clock of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import EventBase, GroupMove
from atropos_tui.ledger.outcomes import OPEN_OUTCOMES, Outcome
from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.config_model import ConfigModel
from atropos_tui.monitor.evals_model import EvalsModel
from atropos_tui.monitor.inference_model import InferenceModel
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.ledger_model import LedgerModel
from atropos_tui.monitor.logs_model import LogsModel
from atropos_tui.monitor.open_groups import EndedGroup, OpenGroups
from atropos_tui.monitor.queue_model import QueueModel
from atropos_tui.monitor.run_model import RunModel
from atropos_tui.monitor.scores_model import ScoresModel
from atropos_tui.monitor.sends_model import SendsModel
from atropos_tui.monitor.skipped_model import SkippedModel
from atropos_tui.monitor.snapshot import SECTIONS, ConfigRow, RecordSection, RunSnapshot, ScoresSection

# Clocks that drift apart by less than this are taken to run alike, so that times shown don't tremble.
_CLOCK_JUMP = 0.5


class Model:
    """Folds the events of one run, in order of their sequence numbers."""

    def __init__(self, alerts: AlertSettings | None = None) -> None:
        self._ledger = LedgerModel()
        self._groups = OpenGroups()
        self._run = RunModel(alerts or AlertSettings())
        self._queue = QueueModel()
        self._scores = ScoresModel()
        self._skipped = SkippedModel()
        self._sends = SendsModel()
        self._inference = InferenceModel()
        self._logs = LogsModel()
        self._evals = EvalsModel()
        self._config = ConfigModel()
        self._handlers: defaultdict[type[EventBase], list[Callable[[Any], None]]] = defaultdict(list)
        for part in (
            self._groups, self._run, self._queue, self._scores, self._skipped,
            self._sends, self._inference, self._logs, self._evals, self._config,
        ):  # fmt: skip
            for event_type, handler in part.handlers().items():
                self._handlers[event_type].append(handler)
        self._seq = 0
        self._offset: float | None = None
        self._record = RecordSection()
        self._snapshot = RunSnapshot(versions=dict.fromkeys(SECTIONS, 0))

    def apply(self, event: EventBase) -> EndedGroup | None:
        """Fold one event in; the group that ended by it, if one did. An illegal move only unbalances the ledger."""
        self._seq = event.seq
        now = self._instant(event.mono, event.wall)
        if not self._ledger.apply(event):
            return None
        for handler in self._handlers.get(type(event), ()):
            handler(event)
        if not isinstance(event, GroupMove) or event.outcome in OPEN_OUTCOMES:
            return None
        ended = self._groups.end(event, now.at(event.mono))
        self._skipped.ended(ended.row, event.mono)
        self._sends.ended(ended.row)
        if event.outcome is Outcome.FAILED:
            self._logs.failed(ended.row.group_id, ended.row.item)
        return ended

    def note_content(self, group_id: int, finishes: Iterable[str] = ()) -> None:
        """The content of a group on the way was kept, so that its line can say so, and how its replies ended."""
        self._groups.note_content(group_id, finishes)

    def look(self, content: GroupContent, mono: float) -> None:
        """See what a group's content tells of its scores and its tokens."""
        self._scores.look(content, mono)

    def recall(self, kept: RunSnapshot | None) -> None:
        """Let a snapshot that was kept tell what the contents of groups told until then; None: nobody knows.

        For events that are folded from a record, which has no contents among them.
        """
        if kept is None:
            self._scores.recall(ScoresSection(kept_at=-1.0))
            return
        self._scores.recall(replace(kept.scores, kept_at=0.0 if kept.seq >= self._seq else kept.taken_at))
        self._run.recall(kept.run.alerts)

    def note_loop(self, lag: float, held_by: str) -> None:
        """How late the author's event loop is, in seconds, and the line that holds it (empty: none does)."""
        self._run.note_loop(lag, held_by)

    def count_unseen_logs(self, by_level: Mapping[str, int]) -> None:
        """Log lines that came too fast to be looked at one by one."""
        self._logs.count_unseen(by_level)

    def note_record(self, record: RecordSection) -> None:
        """What is recorded of the run."""
        self._record = record

    def config(self) -> tuple[ConfigRow, ...]:
        """The merged configuration, with the source of each value."""
        return self._config.rows()

    def snapshot(self, mono: float, wall: float) -> RunSnapshot:
        """All sections at this moment. A section that shows nothing new keeps its version and is the same object."""
        now = self._instant(mono, wall)
        ledger = self._ledger.section()
        queue = self._queue.section(now, self._groups.rows(now), ledger.by_outcome[Outcome.IN_FLIGHT])
        scores = self._scores.section()
        skipped = self._skipped.section(now)
        sends = self._sends.section(now, ledger, self._groups.oldest_in_outbox())
        inference = self._inference.section(now)
        self._snapshot = self._with_versions(
            now.at(mono),
            run=self._run.section(now, ledger, queue, scores, skipped, sends, inference, self._record),
            ledger=ledger,
            queue=queue,
            scores=scores,
            skipped=skipped,
            sends=sends,
            inference=inference,
            logs=self._logs.section(now),
            evals=self._evals.section(now),
            record=self._record,
        )
        return self._snapshot

    def _with_versions(self, taken_at: float, **sections: Any) -> RunSnapshot:
        before = self._snapshot
        versions = dict(before.versions)
        for name, section in sections.items():
            shown = getattr(before, name)
            if versions[name] and section == shown:
                sections[name] = shown
            else:
                versions[name] += 1
        return RunSnapshot(seq=self._seq, taken_at=taken_at, versions=versions, **sections)

    def _instant(self, mono: float, wall: float) -> Instant:
        offset = wall - mono
        if self._offset is None or abs(offset - self._offset) > _CLOCK_JUMP:
            self._offset = offset
        return Instant(mono, self._offset)
