"""Whether the memory of worker and screen stays flat over a long run.

    python benchmarks/long_run.py [--groups 300000] [--side monitor|screen] [--check]

- monitor: hundreds of thousands of groups with contents go through a worker's monitor: model, memory of groups, record
  (with a size limit, so that parts make room), snapshots as a screen asks for them;
- screen: the snapshots of such a run arrive at the application, which decodes and paints each.

Each side is a process of its own. Resident memory is sampled twenty times; the slope is that of the second half.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from statistics import linear_regression

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from atropos_tui.ledger import EventStream  # noqa: E402
from atropos_tui.ledger.events import LogLine, RunStarted, StateChanged, TrainerStatus  # noqa: E402
from atropos_tui.ledger.outcomes import RunState  # noqa: E402
from atropos_tui.monitor.group_store import MemoryGroupStore  # noqa: E402
from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS, Recorder  # noqa: E402
from atropos_tui.monitor.run_file.writer import RecordLevel  # noqa: E402
from atropos_tui.monitor.run_view import RunView  # noqa: E402
from atropos_tui.monitor.snapshot import RunSnapshot  # noqa: E402
from atropos_tui.monitor.wire import SnapshotEncoder, SnapshotMerger  # noqa: E402
from benchmarks.run_file import GROUP, Answers, resident_megabytes, tell_group  # noqa: E402

SAMPLES = 20
GROUPS_A_SNAPSHOT = 50
# Small, so that these bounds are reached early: until then what they bound grows.
RECORD_LIMIT = 40 << 20
REMEMBERED_GROUPS = 1_000
# Megabytes per 100,000 groups; what is left of the allocator's own unrest.
MOST_GROWTH = 2.0


def monitor_side(groups: int) -> Iterator[tuple[int, float]]:
    """Groups so far and megabytes, `SAMPLES` times."""
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(Path(directory) / "run.db", RecordLevel.ALL, RECORD_LIMIT)
        view = RunView(MemoryGroupStore(REMEMBERED_GROUPS), recorder=recorder)
        encoder = SnapshotEncoder()
        recorder.start(1, 1, time.time())
        for number in told(view, groups):
            while recorder.contents_waiting > MAX_CONTENTS // 2:
                time.sleep(0.001)
            if number % GROUPS_A_SNAPSHOT == 0:
                view.record_moment()
                encoder.encode(view.snapshot(), {})
            if number % (groups // SAMPLES) == 0:
                yield number, _megabytes()
        recorder.close()
        if stopped := recorder.section().stopped:
            print(f"recording stopped: {stopped}")


def screen_side(groups: int) -> Iterator[tuple[int, float]]:
    """The same of an application that shows the run."""
    samples: list[tuple[int, float]] = []
    asyncio.run(_watch(groups, samples))
    yield from samples


async def _watch(groups: int, samples: list[tuple[int, float]]) -> None:
    from atropos_tui.ui.app import AtroposApp
    from atropos_tui.ui.run_source import NoRun

    class Playing(NoRun):
        """Snapshots as they come over the wire, as fast as they are painted."""

        async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
            del hz
            view, encoder, merger = RunView(MemoryGroupStore(REMEMBERED_GROUPS)), SnapshotEncoder(), SnapshotMerger()
            known: dict[str, int] = {}
            for number in told(view, groups):
                if number % GROUPS_A_SNAPSHOT == 0 and (body := encoder.encode(view.snapshot(), known)):
                    merger.merge(body)
                    known = merger.snapshot.versions
                    yield merger.snapshot
                    await asyncio.sleep(0)
                if number % (groups // SAMPLES) == 0:
                    samples.append((number, _megabytes()))
            app.exit()

    app = AtroposApp(Playing(), rate=30.0)
    async with app.run_test(size=(120, 40)) as pilot:
        while len(samples) < SAMPLES:
            await pilot.pause(0.1)


def told(view: RunView, groups: int) -> Iterator[int]:
    """Tell the view of groups one by one, with the log lines and steps between them; how many it knows."""
    answers = Answers()
    contents = [answers.group(number) for number in range(32)]
    stream = EventStream(view.collector)
    stream.publish(
        RunStarted, run_id="long", environment="Long", file="long.py", pid=1, group_size=GROUP, total_steps=10_000,
        max_token_length=2048, tokenizer_name="",
    )  # fmt: skip
    stream.publish(StateChanged, state=RunState.RUNNING)
    for number in range(1, groups + 1):
        tell_group(stream, number, contents[number % len(contents)])
        if number % 20 == 0:
            stream.publish(LogLine, level="INFO", logger="env", text=f"took item {number} of shard {number % 977}")
        if number % 100 == 0:
            stream.publish(
                TrainerStatus, step=number // 100, batch_size=64, queue_size=3, queue_limit=100, self_queue_size=3,
                env_weight=1.0, unallocated_fraction=0.0,
            )  # fmt: skip
        view.drain()
        yield number


def _megabytes() -> float:
    gc.collect()
    return resident_megabytes()


def growth(samples: Sequence[tuple[int, float]]) -> float:
    """Megabytes per 100,000 groups in the second half."""
    half = samples[len(samples) // 2 :]
    return linear_regression([groups for groups, _ in half], [megabytes for _, megabytes in half]).slope * 100_000


def measure(side: str, groups: int) -> float:
    """Run one side in a process of its own, print its samples, return its growth."""
    command = [sys.executable, __file__, "--groups", str(groups), "--run", side]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    samples = [(int(groups), float(megabytes)) for groups, megabytes in map(str.split, filter(None, lines))]
    print(f"{side}\n{'groups':>10}  {'MB':>7}")
    for number, megabytes in samples[1::2]:
        print(f"{number:>10,}  {megabytes:>7.1f}")
    print(f"second half: {growth(samples):+.2f} MB per 100,000 groups (at most {MOST_GROWTH:g})\n")
    return growth(samples)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=300_000)
    sides = {"monitor": monitor_side, "screen": screen_side}
    parser.add_argument("--side", choices=sides)
    parser.add_argument("--check", action="store_true", help="exit status 1 where memory grows")
    parser.add_argument("--run", choices=sides, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.run:
        for groups, megabytes in sides[args.run](args.groups):
            print(groups, megabytes, flush=True)
        return 0
    grown = [measure(side, args.groups) for side in sides if args.side in (None, side)]
    return int(args.check and max(grown) > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
