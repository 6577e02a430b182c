"""`atropos-tui ls`: the runs of this machine's user, newest first. Exit status: 0; 2 where a named path has none."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.discovery import FoundRun, find_run, list_runs, run_root
from atropos_tui.monitor.live_run import last_log_lines
from atropos_tui.ui.text_safety import visible

ANSWER_SECONDS = 2.0

_EPILOG = """\
Without a PATH: the runs in $ATROPOS_TUI_RUNS, or ~/.local/state/atropos-tui/runs, and those that `serve --run-dir`
has started elsewhere. NAME is what the other verbs take.

states: starting running pausing paused evaluating finishing  the worker answers
        finished crashed                                      it ended; WHY says how
        silent                                                it lives and doesn't answer
        elsewhere                                             it runs on another host

exit status: 0; 2 where a PATH has no run"""


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("ls", "List the runs, newest first, and how they are.", _EPILOG)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a run's directory, or one with runs in it")
    parser.add_argument("--root", type=Path, metavar="DIR", help="list the runs in this directory instead")
    parser.add_argument("--json", action="store_true", help="one JSON array")
    args = parser.parse_args(argv)
    told = asyncio.run(_tell_all(_wanted(args.paths, args.root)))
    if args.json:
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif told:
        sys.stdout.writelines(_table(told))
    else:
        sys.stdout.write(f"no runs in {args.root or run_root()}\n")
    return 0


def _wanted(paths: Sequence[Path], root: Path | None) -> Sequence[FoundRun]:
    """Raises UsageError for a path that leads to no run."""
    if not paths:
        return list_runs(root)
    runs = {run.run_dir.resolve(): run for path in paths for run in _below(path.expanduser())}
    return sorted(runs.values(), key=lambda run: run.worker.started_at, reverse=True)


def _below(path: Path) -> Sequence[FoundRun]:
    run = find_run(path)
    runs = list_runs(path) if run is None else [run]
    if not runs:
        raise UsageError(f"there is no run in {path}", "name a run's directory, or one with runs in it")
    return runs


async def _tell_all(runs: Sequence[FoundRun]) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*map(_tell, runs)))


async def _tell(run: FoundRun) -> dict[str, Any]:
    worker = run.worker
    state, why = await _state(run)
    return {
        "name": run.run_dir.name, "state": state, "environment": worker.environment, "started_at": worker.started_at,
        "ended_at": worker.ended_at, "pid": worker.pid, "host": worker.host, "run_dir": str(run.run_dir), "why": why,
    }  # fmt: skip


async def _state(run: FoundRun) -> tuple[str, str]:
    """The state, and for a run that ended why."""
    if run.alive:
        try:
            async with asyncio.timeout(ANSWER_SECONDS), RunClient(run.worker.socket) as client:
                return str((await client.health())["state"]), ""
        except (AtroposError, TimeoutError):
            return "silent", ""
    if run.worker.ended_at:
        return run.worker.end_state, run.worker.why
    if run.elsewhere:
        return "elsewhere", f"on {run.worker.host}"
    lines = await asyncio.to_thread(last_log_lines, run.run_dir, 1)
    return "crashed", "gone without a word" + (f"; its log ends with: {lines[0]}" if lines else "")


def _table(told: Sequence[dict[str, Any]]) -> list[str]:
    width = max(len("NAME"), *(len(run["name"]) for run in told))
    lines = [f"{'NAME':<{width}}  {'STATE':<10}  {'STARTED':<16}  {'ENVIRONMENT':<20}  WHY\n"]
    for run in told:
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["started_at"]))
        why = visible(run["why"][:120])
        line = f"{run['name']:<{width}}  {run['state']:<10}  {started:<16}  {run['environment']:<20}  {why}"
        lines.append(line.rstrip() + "\n")
    return lines
