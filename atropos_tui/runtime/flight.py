"""A group in flight: one item on its way to exactly one outcome."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import (
    GroupFailed,
    GroupMove,
    GroupRejected,
    GroupRequeued,
    GroupSkipped,
    GroupStageChanged,
    GroupStarted,
)
from atropos_tui.ledger.outcomes import FailReason, RejectReason, RequeueReason, ScoreSplit, SkipReason, Stage
from atropos_tui.runtime.failures import describe, fail_reason, traceback_text

ITEM_PREVIEW = 300

# The group that the running task works for; None outside of rollouts.
current_flight: ContextVar[Flight | None] = ContextVar("current_flight", default=None)


def preview(item: Any) -> str:
    """An item printed on one line of bounded length, whatever it is."""
    try:
        text = item if isinstance(item, str) else repr(item)
    except Exception as error:  # noqa: BLE001  an item's repr is the author's code
        text = f"<{type(item).__name__}: repr raised {type(error).__name__}>"
    line = " ".join(text[: 4 * ITEM_PREVIEW].split())
    return line if len(line) <= ITEM_PREVIEW else line[: ITEM_PREVIEW - 1] + "…"


class Flight:
    """Starts a group in the ledger and ends it once: whatever is said after the first outcome is dropped.

    `claimed` is set when a finished group took over the number: from then on the delivery ends the flight, and no
    cancellation of the worker does. Further groups of the same item get flights of their own.
    """

    def __init__(
        self,
        stream: EventStream,
        group_id: int,
        item: Any,
        *,
        rollouts: int,
        step: int,
        from_backlog: bool = False,
        split_from: int | None = None,
    ) -> None:
        self.group_id = group_id
        self.item = item
        self.step = step
        self.split_from = split_from
        self.preview = preview(item)
        self.claimed = False
        self.settled = False
        self.written = False
        self.error = ""
        self.recalled: asyncio.Future[RequeueReason | FailReason] = asyncio.get_running_loop().create_future()
        self._stream = stream
        stream.publish(
            GroupStarted,
            group_id=group_id,
            item=self.preview,
            rollouts=rollouts,
            step=step,
            from_backlog=from_backlog,
            split_from=split_from,
        )

    @property
    def recallable(self) -> bool:
        """Whether the environment's code still works on it, so that it can be cancelled without loss."""
        return not (self.claimed or self.settled or self.recalled.done())

    def recall(self, reason: RequeueReason | FailReason) -> bool:
        """Ask for the rollouts to be cancelled; the item is put back unless the reason is one of failure.

        False when they are done already.
        """
        if not self.recallable:
            return False
        self.recalled.set_result(reason)
        return True

    def enter(self, stage: Stage) -> None:
        if not self.settled:
            self._stream.publish(GroupStageChanged, group_id=self.group_id, stage=stage)

    def skip(self, reason: SkipReason, split: ScoreSplit | None = None, detail: str = "") -> None:
        self._settle(GroupSkipped, reason=reason, split=split, detail=detail)

    def reject(self, reason: RejectReason) -> None:
        self._settle(GroupRejected, reason=reason)

    def fail(self, error: BaseException) -> None:
        self.error = describe(error)
        self._settle(GroupFailed, reason=fail_reason(error), error=self.error, traceback=traceback_text(error))

    def give_up(self) -> None:
        """The operator does not want the group. Nothing broke, so there is no `error`."""
        self._settle(GroupFailed, reason=FailReason.CANCELLED, error="cancelled by the operator")

    def requeue(self, reason: RequeueReason) -> None:
        self._settle(GroupRequeued, reason=reason)

    def hand_over(self) -> None:
        """From here on somebody else publishes what becomes of the group."""
        self.settled = True

    def take_back(self) -> None:
        """The other side did not take it."""
        self.settled = False

    def _settle(self, outcome: type[GroupMove], **fields: Any) -> None:
        if self.settled:
            return
        self.settled = True
        self._stream.publish(outcome, group_id=self.group_id, **fields)


class GroupNumbers:
    """Group numbers without gaps, unique in the run."""

    def __init__(self, first: int = 1) -> None:
        self._numbers: Iterator[int] = itertools.count(first)

    def next(self) -> int:
        return next(self._numbers)

    def start_at(self, first: int) -> None:
        """Go on above what an earlier process of the same run used."""
        self._numbers = itertools.count(first)
