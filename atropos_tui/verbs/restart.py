"""`atropos-tui restart RUN`: a run whose worker is gone goes on, in the background.

With the same flags, outbox, run file and place in the data. Exit status: 0 it runs again, 1 the worker is still there
or does not come, 2 there is no such run, or nobody knows how it was started.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import AtroposError
from atropos_tui.verbs.finding import which_run
from atropos_tui.verbs.starting import WorkerStarter


def main(argv: Sequence[str]) -> int:
    parser = verb_parser(
        "restart",
        "Start a run again whose worker is gone: with the same flags, outbox, record and place in the data.",
        "exit status: 0 it runs again, 1 its worker is still there or does not come, 2 no such run",
    )
    parser.add_argument("run", metavar="RUN", help="a run's directory or name, or the beginning of its name")
    run = which_run(parser.parse_args(argv).run)
    if run.alive:
        raise AtroposError(f"the worker of {run.run_dir.name} is alive", f"atropos-tui stop {run.run_dir} ends it")
    WorkerStarter(run.run_dir).restart()
    sys.stdout.write(f"{run.run_dir}\n")
    return 0
