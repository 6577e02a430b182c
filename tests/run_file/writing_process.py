"""A process that records groups as fast as it can until it is killed: `python -m … RUN_FILE FIRST_GROUP`.

It prints the number of each group as soon as the record says that the group's delivery is on disk.
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path

from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS
from tests.run_file.recorded_run import RecordedRun, wait_until


def main(path: Path, first_group: int) -> None:
    run = RecordedRun(path, first_group=first_group)
    unconfirmed: deque[tuple[int, int]] = deque()
    while True:
        wait_until(lambda: run.recorder.contents_waiting < MAX_CONTENTS // 2, "written")
        group_id = run.enqueued(tokens=200, text="words that are searched")
        run.deliver(group_id)
        run.view.drain()
        unconfirmed.append((run.view.snapshot().seq, group_id))
        written = run.recorder.section().seq
        while unconfirmed and unconfirmed[0][0] <= written:
            sys.stdout.write(f"{unconfirmed.popleft()[1]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
