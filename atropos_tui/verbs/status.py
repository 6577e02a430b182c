"""`atropos-tui status`: how one run is.

Exit status: 0 its worker answers and the run goes on, 3 it finished, 4 it crashed, 1 it lives and doesn't answer,
2 wrong use.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing

from atropos_tui.arguments import verb_parser
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.snapshot import RecordSection, RunSnapshot
from atropos_tui.ui.text_safety import visible
from atropos_tui.verbs.finding import RUN_HELP, which_run
from atropos_tui.verbs.plain import summary_line
from atropos_tui.verbs.printing import as_json

EXIT_STATUS = {RunState.FINISHED: 3, RunState.CRASHED: 4}


def main(argv: Sequence[str]) -> int:
    parser = verb_parser(
        "status",
        "Say how a run is.",
        "exit status: 0 it goes on, 3 it finished, 4 it crashed, 1 it lives and doesn't answer, 2 wrong use",
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--json", action="store_true", help="one JSON object with everything the screen shows")
    args = parser.parse_args(argv)
    run = which_run(args.run)
    snapshot = asyncio.run(_newest(LiveRun(run.run_dir, decode=lambda ids: [])))
    if args.json:
        sys.stdout.write(as_json(snapshot, run_dir=str(run.run_dir)))
    else:
        sys.stdout.write(summary_line(snapshot) + "\n")
        sys.stdout.writelines(f"  alert: {visible(alert.text)}\n" for alert in snapshot.run.alerts)
        if snapshot.record.level:
            sys.stdout.write(f"  record: {_in_words(snapshot.record)}\n")
    return EXIT_STATUS.get(snapshot.run.state, 0)


async def _newest(run: LiveRun) -> RunSnapshot:
    try:
        async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]  # streams are generators
            return await anext(snapshots)
    finally:
        await run.close()


def _in_words(record: RecordSection) -> str:
    """Where the record is, how large, and what is not in it."""
    limit = f" of {record.size_limit / 1e6:,.0f}" if record.size_limit else ""
    missing = {
        "token arrays made room": record.dropped_arrays,
        "contents made room": record.dropped_contents,
        "contents came too fast": record.missed_contents,
    }
    told = [f"{what}: {groups} groups" for what, groups in missing.items() if groups]
    told += [f"stopped: {record.stopped}"] if record.stopped else []
    return ", ".join([f"{record.size / 1e6:,.0f}{limit} MB in {record.path}", *told])
