"""What a screen shows first after a day-long run, and how soon, beside an empty Textual application.

    python benchmarks/first_paint.py [--rollouts 500000] [--paints 9] [--check]

A worker's monitor is told of so many rollouts, recording them, and then serves: that run is attached to. Then the
worker is killed, and what it left is opened. Each time is from the start of the process to the first frame with numbers
in a terminal of 120×40, in turns with the empty application; the budgets are 0.3 s and 1.5 times the empty one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from atropos_tui.monitor.discovery import WorkerFile, write_worker_file  # noqa: E402
from atropos_tui.monitor.monitor_thread import MonitorThread  # noqa: E402
from atropos_tui.monitor.run_file.place import RUN_FILE  # noqa: E402
from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS, Recorder  # noqa: E402
from atropos_tui.monitor.run_file.writer import RecordLevel  # noqa: E402
from benchmarks.console import CONTENT, EMPTY_APP  # noqa: E402
from benchmarks.screen_in_terminal import ScreenInTerminal  # noqa: E402

BUDGET_SECONDS = 0.3
BUDGET_RATIO = 1.5


def age(run_dir: Path, rollouts: int) -> None:
    """Be a worker that has run for a day: says `ready` when it serves, and serves until it is killed."""
    from atropos_tui.monitor.group_store import MemoryGroupStore
    from atropos_tui.monitor.run_view import RunView
    from benchmarks.busy_worker import NoCommands
    from benchmarks.long_run import told
    from benchmarks.run_file import GROUP

    recorder = Recorder(run_dir / RUN_FILE, RecordLevel.ALL)
    view = RunView(MemoryGroupStore(), recorder=recorder)
    recorder.start(1, os.getpid(), time.time())
    for number in told(view, rollouts // GROUP):
        if number % 100 == 0:
            view.record_moment()
        while recorder.contents_waiting > MAX_CONTENTS // 2:
            time.sleep(0.001)
    socket = run_dir / "control.sock"
    MonitorThread(view, NoCommands(), socket, decode=lambda ids: []).start()
    write_worker_file(
        run_dir,
        WorkerFile(
            run_id="long",
            pid=os.getpid(),
            started_at=time.time(),
            socket=str(socket),
            environment="Long",
            file="long.py",
        ),
    )
    print("ready", flush=True)
    sys.stdin.read()


@contextmanager
def aged_worker(run_dir: Path, rollouts: int) -> Iterator[None]:
    command = [sys.executable, __file__, "--age", str(run_dir), "--rollouts", str(rollouts)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        try:
            assert worker.stdout.readline() == "ready\n"
            yield
        finally:
            worker.kill()


def paints(command: Sequence[str], times: int) -> tuple[float, float]:
    """Median seconds to content of this command and of the empty application, in turns.

    The first starts, which write bytecode, do not count.
    """
    ours, empty = [], []
    for _ in range(1 + times):
        with ScreenInTerminal([sys.executable, "-c", EMPTY_APP]) as screen:
            empty.append(screen.wait_for(b"nothing here"))
        with ScreenInTerminal(command) as screen:
            ours.append(screen.wait_for(CONTENT))
    return statistics.median(ours[1:]), statistics.median(empty[1:])


def report(name: str, ours: float, empty: float) -> bool:
    """Whether it is within the budget: on a slow machine an empty application takes most of 0.3 s."""
    print(f"{name:<28} {ours:6.3f} s   an empty application {empty:6.3f} s   {ours / empty:4.2f} ×")
    return ours <= max(BUDGET_SECONDS, BUDGET_RATIO * empty)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=500_000)
    parser.add_argument("--paints", type=int, default=9)
    parser.add_argument("--check", action="store_true", help="exit status 1 beyond the budget")
    parser.add_argument("--age", type=Path, metavar="RUN_DIR", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.age:
        age(args.age, args.rollouts)
        return 0
    atropos = [sys.executable, "-m", "atropos_tui"]
    with tempfile.TemporaryDirectory() as directory:
        run_dir = Path(directory)
        with aged_worker(run_dir, args.rollouts):
            good = report("attach to the worker", *paints([*atropos, "attach", str(run_dir)], args.paints))
        good &= report("open what it left", *paints([*atropos, "open", str(run_dir)], args.paints))
    return int(args.check and not good)


if __name__ == "__main__":
    sys.exit(main())
