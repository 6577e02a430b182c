"""Moments of a recorded run, by the same model that made them when it was live.

A moment is folded from all events of its life until then. Of a long run that takes seconds: folding goes on in short
stretches, a snapshot that was kept at most half a minute before stands in meanwhile, and the folded model is laid by
every so often, so that no later moment is far from one.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Self

from atropos_tui.ledger.events import Event
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.run_file.reader import Life, RunFileReader
from atropos_tui.monitor.snapshot import SECTIONS, RunSection, RunSnapshot

# So many events are folded in a fifth of a second.
STRETCH = 5_000
# A model takes about 90 kB.
EVENTS_BETWEEN_CHECKPOINTS = 5_000
MOST_CHECKPOINTS = 512
# Alerts say since when they have held, which they know from having been looked for; live, that is four times a second.
LOOK_SECONDS = 10.0
_FOREVER = float("inf")


class Moments:
    """Methods block, for as long as reading and folding takes. For one thread at a time."""

    def __init__(self, reader: RunFileReader) -> None:
        self._reader = reader
        self._fold: _Fold | None = None
        self._checkpoints: list[_Checkpoint] = []

    def extent(self) -> tuple[float, float]:
        """When the first life began and when the newest event happened, in Unix seconds."""
        lives = self._reader.lives()
        return (lives[0].started_at if lives else 0.0), self._reader.extent().wall

    def stand_in(self, wall: float | None) -> RunSnapshot | None:
        """The last snapshot kept before a moment that would be waited for. It is exact where its `seq` is the moment's.

        None where the moment itself is quickly there, or nothing was kept.
        """
        life = self._life(wall)
        kept = self._kept(life, wall) if life is not None else None
        if life is None or kept is None:
            return None
        if wall is None and self._fold is None and kept.seq == self._reader.extent().seq:
            return kept
        nearest = self._nearest(life, _FOREVER if wall is None else wall)
        first = life.first_seq if nearest is None else nearest.following
        return kept if self._reader.events_until(first, wall) > STRETCH else None

    def folded(self, wall: float | None = None, most: int = STRETCH) -> RunSnapshot | None:
        """The run as it was at this time (Unix seconds, None: at the end), after folding at most so many more events.

        None when that did not suffice: call it again.
        """
        life = self._life(wall)
        if life is None:
            return RunSnapshot(taken_at=wall or 0.0)
        until = _FOREVER if wall is None else wall
        self._fold = self._nearest(life, until) or _Fold(life)
        arrived = self._fold.read_on(self._reader, until, most)
        self._lay_by(self._fold)
        if not arrived:
            return None
        self._fold.recall(self._kept(life, wall))
        return self._fold.snapshot(wall)

    def newest(self) -> RunSnapshot:
        """The last moment in the file. Blocks for as long as it takes."""
        kept = self.stand_in(None)
        if kept is not None and kept.seq == self._reader.extent().seq:
            return kept
        while (snapshot := self.folded(None)) is None:
            pass
        return snapshot

    def _kept(self, life: Life, wall: float | None) -> RunSnapshot | None:
        """The last snapshot that was kept of a life before a moment."""
        kept = self._reader.keyframe(wall)
        return kept if kept is not None and kept.seq >= life.first_seq else None

    def _life(self, wall: float | None) -> Life | None:
        """The life that lasted then."""
        begun = [life for life in self._reader.lives() if wall is None or life.started_at <= wall]
        return begun[-1] if begun else None

    def _nearest(self, life: Life, until: float) -> _Fold | None:
        """What is folded already, closest to the moment and not after it."""
        found = self._fold if self._fold is not None and self._fold.reaches(life, until) else None
        laid_by = [point for point in self._checkpoints if point.life == life and point.wall <= until]
        newest = max(laid_by, key=lambda point: point.following, default=None)
        if newest is not None and (found is None or newest.following > found.following):
            return _Fold.of(newest)
        return found

    def _lay_by(self, fold: _Fold) -> None:
        of_life = [point.following for point in self._checkpoints if point.life == fold.life]
        if fold.following - max(of_life, default=fold.life.first_seq) < EVENTS_BETWEEN_CHECKPOINTS:
            return
        self._checkpoints.append(fold.checkpoint())
        if len(self._checkpoints) > MOST_CHECKPOINTS:
            del self._checkpoints[::2]


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A model with all events of a life before number `following`, the newest of which happened at `wall`."""

    life: Life
    following: int
    wall: float
    model: bytes


class _Fold:
    """The events of one life, folded as far as they were read."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.following = life.first_seq
        self._model = Model()
        self._last: Event | None = None
        self._looks_at = 0.0

    @classmethod
    def of(cls, point: _Checkpoint) -> Self:
        fold = cls(point.life)
        fold.following = point.following
        fold._model, fold._last = pickle.loads(point.model)  # made by this process, see `checkpoint`
        return fold

    def checkpoint(self) -> _Checkpoint:
        wall = self._last.wall if self._last else self.life.started_at
        return _Checkpoint(self.life, self.following, wall, pickle.dumps((self._model, self._last)))

    def reaches(self, life: Life, until: float) -> bool:
        """Whether no event after this moment is in it."""
        return self.life == life and (self._last is None or self._last.wall <= until)

    def read_on(self, reader: RunFileReader, until: float, most: int) -> bool:
        """Fold at most so many events further; whether all until the moment are folded."""
        for count, event in enumerate(reader.events(self.following, until)):
            if count == most:
                return False
            self._model.apply(event)
            self._last, self.following = event, event.seq + 1
            if event.mono >= self._looks_at:
                self._looks_at = event.mono + LOOK_SECONDS
                self._model.snapshot(event.mono, event.wall)
        return True

    def recall(self, kept: RunSnapshot | None) -> None:
        """What the contents of groups told, which are not among the events, is what was kept of that."""
        self._model.recall(kept)

    def snapshot(self, wall: float | None) -> RunSnapshot:
        """At this time (Unix seconds), or at that of the last event."""
        if self._last is None:
            return _before_all_events(self.life, wall)
        taken_at = self._last.wall if wall is None else wall
        return self._model.snapshot(self._last.mono + taken_at - self._last.wall, taken_at)


def _before_all_events(life: Life, wall: float | None) -> RunSnapshot:
    run = RunSection(
        run_id=life.run_id, environment=life.environment, file=life.file, pid=life.pid, started_at=life.started_at
    )
    return RunSnapshot(taken_at=wall or life.started_at, versions=dict.fromkeys(SECTIONS, 0), run=run)
