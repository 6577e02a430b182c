"""A run as the monitor thread sees it: events drained into the model, contents into the store, snapshots out."""

from __future__ import annotations

import logging

from atropos_tui.ledger import Clock, GroupContent
from atropos_tui.ledger.events import EventBase, GroupEnqueued, LogLine
from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.collector import Collector
from atropos_tui.monitor.group_pages import GroupPages
from atropos_tui.monitor.group_store import GroupStore
from atropos_tui.monitor.loop_watch import LoopWatch
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.run_file.recorder import Recorder
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot

logger = logging.getLogger(__name__)


class RunView:
    """Used by one thread; what other threads touch are `collector` and `loop_watch` only.

    `recorder` gets all that is drained; its owner starts it.
    """

    def __init__(
        self,
        store: GroupStore,
        clock: Clock | None = None,
        recorder: Recorder | None = None,
        alerts: AlertSettings | None = None,
    ) -> None:
        self.collector = Collector()
        self.loop_watch = LoopWatch()
        self.groups = GroupPages(store, recorder)
        self._store = store
        self._recorder = recorder
        self._model = Model(alerts)
        self._clock = clock or Clock()

    def drain(self, most: int = 1_000) -> bool:
        """Fold in what was collected, at most `most` of it; whether more waits."""
        for taken in self.collector.drain(most):
            try:
                self._take(taken)
            except Exception:
                # A fault of the monitor's own. The run must not suffer from it, and a log line can tell of it once.
                if not isinstance(taken, LogLine):
                    logger.exception("the monitor cannot take in %s", type(taken).__name__)
        if dropped := self.collector.take_dropped_log_lines():
            self._model.count_unseen_logs(dropped)
        return self.collector.waiting > 0

    def watch_loop(self) -> None:
        """See how the author's loop does; often enough that a hold is caught while it lasts."""
        self._model.note_loop(*self.loop_watch.observe())

    def snapshot(self) -> RunSnapshot:
        """This moment, with whatever was drained so far."""
        self.watch_loop()
        if self._recorder is not None:
            self._model.note_record(self._recorder.section())
        return self._model.snapshot(self._clock.monotonic(), self._clock.wall())

    def config(self) -> tuple[ConfigRow, ...]:
        """The merged configuration, with the source of each value."""
        return self._model.config()

    def record_moment(self, *, last: bool = False) -> None:
        """Let the record have this moment, when it is time for one or the run is over."""
        if self._recorder is not None and (last or self._recorder.keyframe_is_due(self._clock.monotonic())):
            self._recorder.note_snapshot(self.snapshot())

    def close_record(self) -> None:
        """Write what the record still waits for. Blocks, for a bounded time."""
        if self._recorder is not None:
            self._recorder.close()

    def _take(self, taken: EventBase | GroupContent) -> None:
        recorder = self._recorder
        if isinstance(taken, GroupContent):
            self._store.keep(taken)
            self._model.note_content(taken.group_id, (rollout.finish_reason for rollout in taken.rollouts))
            self._model.look(taken, self._clock.monotonic())
            if recorder is not None:
                recorder.note_content(taken)
            return
        ended = self._model.apply(taken)
        if ended is not None:
            place = self._store.ended(ended)
            if recorder is not None:
                recorder.note_ended(place, taken.seq, ended)
        elif isinstance(taken, GroupEnqueued):
            self._store.enqueued(taken.group_id)
        # After the group, so that the file never says of an event that it is written while its group is not.
        if recorder is not None:
            recorder.note_event(taken)
