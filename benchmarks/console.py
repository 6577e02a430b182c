"""The screen as a person at the keyboard notices it, in a pseudo terminal of 120×40.

    python benchmarks/console.py [--json] [--check]

- first paint: from the start of `attach` to the dashboard with numbers, beside an empty Textual application (≤ 1.5×);
- key to repaint while 1,000 groups/s arrive and the worker's own loop is never free (p99 ≤ 50 ms);
- CPU and bytes of the application against the rate of groups (flat).

The worker is `busy_worker.py`: the real monitor with made-up events.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.screen_in_terminal import ScreenInTerminal  # noqa: E402

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("nothing here")
Empty().run()
"""
PAINTS = 15
PRESSES = 40  # of each key
RATES = (0.1, 10, 100, 1_000, 10_000)
WATCH_SECONDS = 8.0
SETTLE_SECONDS = 3.0
DASHBOARD = b"Rollout queue"
# What is drawn only where numbers of the run are known: the first line of the rollout queue.
CONTENT = b"backlog"

# A key, and what is drawn when its effect is on the screen: a pane alone, all panes, and three other screens in turn.
# Not escape, for which every terminal program waits a moment to see whether a sequence follows.
PANES = ((b"z", b"pause now"), (b"z", b"Trainer sends"))
SCREENS = ((b"l", b"Logs"), (b"e", b"Evaluations"), (b"a", b"Alerts"))


@contextmanager
def busy_worker(rate: float, *, blocking: bool = False) -> Iterator[str]:
    """Its socket."""
    with tempfile.TemporaryDirectory() as directory:
        socket = str(Path(directory) / "control.sock")
        command = [sys.executable, "-m", "benchmarks.busy_worker", socket, "--rate", str(rate)]
        options = ["--blocking"] if blocking else []
        with subprocess.Popen(
            command + options, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            try:
                yield socket
            finally:
                worker.kill()


def attach(socket: str) -> list[str]:
    return [sys.executable, "-m", "atropos_tui", "attach", socket]


def first_paint() -> dict[str, float]:
    """Medians in ms, taken in turns; the first starts only write bytecode."""
    seconds: dict[str, list[float]] = {"ours": [], "empty": []}
    with busy_worker(10) as socket:
        for _ in range(1 + PAINTS):
            for side, command, text in (
                ("empty", [sys.executable, "-c", EMPTY_APP], b"nothing here"),
                ("ours", attach(socket), CONTENT),
            ):
                with ScreenInTerminal(command) as screen:
                    seconds[side].append(screen.wait_for(text))
    ours, empty = (1000 * statistics.median(seconds[side][1:]) for side in ("ours", "empty"))
    return {"ours_ms": ours, "empty_ms": empty, "ratio": ours / empty}


def key_to_repaint() -> dict[str, float]:
    """Milliseconds over all keys."""
    with busy_worker(1_000, blocking=True) as socket, ScreenInTerminal(attach(socket)) as screen:
        screen.wait_for(DASHBOARD)
        screen.watch(SETTLE_SECONDS)
        milliseconds = []
        for key, until in (*PANES * PRESSES, *SCREENS * PRESSES):
            milliseconds.append(1000 * screen.press(key, until))
            screen.watch(0.05)
    return {
        "p50_ms": statistics.median(milliseconds),
        "p99_ms": statistics.quantiles(milliseconds, n=100)[98],
        "max_ms": max(milliseconds),
    }


def load(rate: float) -> dict[str, float]:
    """CPU of the application in percent of one core, and what it sends."""
    with busy_worker(rate) as socket, ScreenInTerminal(attach(socket)) as screen:
        screen.wait_for(DASHBOARD)
        screen.watch(SETTLE_SECONDS)
        cpu, received = screen.cpu_seconds(), screen.received
        screen.watch(WATCH_SECONDS)
        used = screen.cpu_seconds() - cpu
    return {
        "groups_per_second": rate,
        "cpu_percent": 100 * used / WATCH_SECONDS,
        "kib_per_second": (screen.received - received) / WATCH_SECONDS / 1024,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a budget is missed")
    args = parser.parse_args(argv)
    paint, keys, loads = first_paint(), key_to_repaint(), [load(rate) for rate in RATES]
    if args.json:
        print(json.dumps({"first_paint": paint, "key_to_repaint": keys, "load": loads}, indent=1))
    else:
        print(
            f"first paint      {paint['ours_ms']:.0f} ms, an empty application {paint['empty_ms']:.0f} ms:"
            f" {paint['ratio']:.2f} × (≤ 1.5)"
        )
        p50, p99, longest = (keys[name] for name in ("p50_ms", "p99_ms", "max_ms"))
        print(f"key to repaint   p50 {p50:.1f} ms, p99 {p99:.1f} ms (≤ 50), max {longest:.1f} ms")
        for row in loads:
            print(
                f"{row['groups_per_second']:>8,g} groups/s   {row['cpu_percent']:5.1f} % of a core,"
                f" {row['kib_per_second']:6.2f} KiB/s"
            )
    return int(args.check and (paint["ratio"] > 1.5 or keys["p99_ms"] > 50))


if __name__ == "__main__":
    sys.exit(main())
