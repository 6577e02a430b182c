"""A process that records into a directory with little room until recording stops: `python -m … DIR [LIMIT_BYTES]`.

It goes on with the run for a while and prints as JSON what became of both. With LIMIT_BYTES no file of the process may
grow beyond that.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path

from tests.run_file.recorded_run import RecordedRun, wait_until

FURTHER_GROUPS = 25


def main(directory: Path, limit: int | None) -> None:
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    run = RecordedRun(directory / "run.db")
    delivered = 0
    while not run.recorder.section().stopped:
        wait_until(lambda: run.recorder.contents_waiting < 16 or run.recorder.section().stopped, "written")
        run.delivered(tokens=2_000, text=f"{delivered} " * 500)
        run.view.drain()
        delivered += 1
    for _ in range(FURTHER_GROUPS):
        run.delivered()
    run.view.drain()
    snapshot = run.view.snapshot()
    told = {
        "delivered": delivered + FURTHER_GROUPS,
        "shown": snapshot.sends.delivered,
        "balanced": snapshot.ledger.balanced,
        "stopped": snapshot.record.stopped,
        "alerts": [alert.text for alert in snapshot.run.alerts if alert.name == "record" and alert.severe],
    }
    run.close()
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
