"""An outbox on a disk that is full: the run waits, says why, and goes on once there is room."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.marked_processes import wait_until
from tests.verbs.served_runs import ServedRuns

# A file system of the worker alone, with room for an empty outbox, and a file that can give way.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=30m tmpfs "$1" && head -c 30500k /dev/zero > "$1/ballast"; shift && exec "$@"
"""
# Their messages are of letters by chance, which no compression makes small.
LARGE_GROUPS = """
    async def collect_trajectories(self, item):
        import secrets
        await asyncio.sleep(0.2)
        messages = [[{"role": "user", "content": secrets.token_hex(100_000)}]] * 4
        return {
            "tokens": [[65, 66, 67]] * 4, "masks": [[-100, 66, 67]] * 4, "scores": [0.0, 1.0, 0.5, 0.25],
            "messages": messages,
        }, []
"""


def may_mount() -> bool:
    """Whether a process may have a file system of its own."""
    if shutil.which("unshare") is None:
        return False
    mount = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(mount, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="mounting a small file system is not allowed here")
def test_a_full_disk_is_why_nothing_moves_and_the_run_goes_on_once_there_is_room(
    runs: ServedRuns, tmp_path: Path
) -> None:
    disk, run_dir = tmp_path / "disk", runs.root / "full"
    disk.mkdir()
    runs.file.write_text(runs.file.read_text() + LARGE_GROUPS)
    started = subprocess.run(
        [
            "unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", disk,
            *runs.serve_command(run_dir, "--detach"), "--env.outbox_path", disk / "outbox.db",
        ],
        env=runs.environment, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert started.returncode == 0, started.stderr

    def waits() -> bool:
        told = runs.status("full")
        return told["queue"]["in_flight"] == 2 == told["sends"]["unwritten"]

    wait_until(waits)
    says = f"free space on {disk}; 2 groups wait for room in the outbox {disk}/outbox.db"
    line, *alerts = runs.run("status", "full").splitlines()
    assert "the disk is full since " in line
    assert says in line
    assert any("alert: the disk is full: free space on" in alert for alert in alerts)
    header = runs.run("attach", "full", "--once")
    assert "▸ the disk is full since " in header
    assert "2 wait for room" in header
    told = runs.status("full")
    assert told["sends"]["delivered"] == 0
    assert told["ledger"]["balanced"]

    Path(f"/proc/{told['run']['pid']}/root{disk}/ballast").unlink()
    runs.wait_for_groups("full", 4)
    wait_until(lambda: not runs.status("full")["sends"]["unwritable"])
    assert runs.status("full")["ledger"]["balanced"]
