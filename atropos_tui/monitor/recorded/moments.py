"""Moments of a recorded run, by the same model that made them when it was live.

A moment is folded from the events of its life where these are few, and exact. Of a long run it is the last snapshot
that was kept before it, at most half a minute earlier: folding a million events would take most of a minute.
"""

from __future__ import annotations

from dataclasses import replace

from atropos_tui.ledger.events import Event
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.run_file.reader import Life, RunFileReader
from atropos_tui.monitor.snapshot import RunSnapshot

MAX_FOLDED = 60_000
# So many are folded in a fraction of a second.
QUICKLY_FOLDED = 5_000


class Moments:
    """Methods block, for as long as reading and folding takes. For one thread at a time."""

    def __init__(self, reader: RunFileReader) -> None:
        self._reader = reader
        self._newest: _Fold | None = None

    def extent(self) -> tuple[float, float]:
        """When the first life began and when the newest event happened, in Unix seconds."""
        lives = self._reader.lives()
        return (lives[0].started_at if lives else 0.0), self._reader.extent().wall

    def quick(self) -> RunSnapshot | None:
        """The last snapshot that was kept, where folding the last moment would be waited for."""
        lives = self._reader.lives()
        if not lives or self._reader.events_until(lives[-1].first_seq) <= QUICKLY_FOLDED:
            return None
        kept = self._reader.keyframe()
        return kept if kept is not None and kept.seq >= lives[-1].first_seq else None

    def newest(self) -> RunSnapshot:
        """The last moment in the file. Only what is new since the last call is read."""
        lives = self._reader.lives()
        if not lives:
            return RunSnapshot()
        life = lives[-1]
        if self._newest is None or self._newest.life != life:
            kept = self._reader.keyframe()
            if kept is not None and kept.seq == self._reader.extent().seq:
                return kept
            if (kept := self._kept(life, None)) is not None:
                return kept
            self._newest = _Fold(life)
        self._newest.read_on(self._reader)
        return self._newest.snapshot()

    def at(self, wall: float) -> RunSnapshot:
        """The run as it was at this time (Unix seconds)."""
        begun = [life for life in self._reader.lives() if life.started_at <= wall]
        if not begun:
            return RunSnapshot(taken_at=wall)
        life = begun[-1]
        if (kept := self._kept(life, wall)) is not None:
            return kept
        fold = _Fold(life)
        fold.read_on(self._reader, wall)
        return fold.snapshot(wall)

    def _kept(self, life: Life, wall: float | None) -> RunSnapshot | None:
        """The snapshot that stands for a moment with too many events before it."""
        if self._reader.events_until(life.first_seq, wall) <= MAX_FOLDED:
            return None
        kept = self._reader.keyframe(wall)
        return kept if kept is not None and kept.seq >= life.first_seq else None


class _Fold:
    """The events of one life, folded as far as they were read."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self._model = Model()
        self._last: Event | None = None

    def read_on(self, reader: RunFileReader, wall: float | None = None) -> None:
        following = self._last.seq + 1 if self._last else self.life.first_seq
        for event in reader.events(following, wall):
            self._model.apply(event)
            self._last = event

    def snapshot(self, wall: float | None = None) -> RunSnapshot:
        """At this time (Unix seconds), or at that of the last event."""
        if self._last is None:
            return RunSnapshot(taken_at=wall or self.life.started_at)
        taken_at = self._last.wall if wall is None else wall
        return self._model.snapshot(self._last.mono + taken_at - self._last.wall, taken_at)


def crashed(snapshot: RunSnapshot, why: str, at: float) -> RunSnapshot:
    """The same moment, of a run whose worker is gone without a word. One that had ended in order stays as it is."""
    if snapshot.run.state in ENDED_STATES:
        return snapshot
    run = replace(
        snapshot.run, state=RunState.CRASHED, headline=f"crashed: {why}", why_ended=why, ended_at=at, alerts=()
    )
    versions = dict(snapshot.versions)
    versions["run"] = versions.get("run", 0) + 1
    return replace(snapshot, run=run, versions=versions, taken_at=max(snapshot.taken_at, at))
