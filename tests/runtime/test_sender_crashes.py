"""A worker that is killed, over and over, and an API that is restarted: each group arrives once, in order."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.runtime.scripted_api import ScriptedApi, lose_reply, scripted_api

GROUPS = 400


def test_groups_survive_kills_of_the_worker_and_restarts_of_the_api(tmp_path: Path) -> None:
    with scripted_api(*[lose_reply] * 3) as api:
        command = [sys.executable, str(Path(__file__).with_name("sending_worker.py")), api.url]
        command += [str(tmp_path / "outbox.db"), str(GROUPS)]
        for number, groups_before_the_end in enumerate((40, 110, 200, 290), start=1):
            worker = subprocess.Popen(command)
            try:
                wait_for_groups(api, groups_before_the_end, worker)
                if number % 2:
                    api.stop()
            finally:
                worker.send_signal(signal.SIGKILL)
                worker.wait(60)
            if number % 2:
                api.start()
        api.stop()
        worker = subprocess.Popen(command)
        api.start()
        assert worker.wait(120) == 0
        assert api.group_ids == list(range(1, GROUPS + 1))
        assert all(taken["tokens"][0][0] == int(key.removeprefix("run:")) for key, taken in api.queue.items())


def wait_for_groups(api: ScriptedApi, count: int, worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while len(api.queue) < count:
        assert worker.poll() is None, "the worker ended by itself"
        assert time.monotonic() < deadline, f"{count} groups did not come within a minute"
        time.sleep(0.005)
