"""`MyEnv.cli() serve` keeps finished groups on disk: a process that is killed loses none, and a restart sends them."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.runtime.encoding import EncodedGroup
from atropos_tui.runtime.outbox import Outbox
from atropos_tui.runtime.outbox_place import outbox_path
from tests.runtime.serving_parts import FakeTrajectoryApi, RecordedEvents, ScriptedEnv, serving, until

MakeEnv = Callable[..., ScriptedEnv]

# Items are numbers, and each process begins with a number of its own.
SCRIPT = """\
import sys
from atroposlib.envs.base import BaseEnv


class Numbers(BaseEnv):
    name = "numbers"
    iter = int(sys.argv.pop(1))

    async def get_next_item(self):
        self.iter += 1
        return self.iter if self.iter % 100 <= 3 else None

    async def collect_trajectories(self, item):
        tokens = [[item, 1, 2], [item, 3, 4]]
        return {"tokens": tokens, "masks": [[-100, *row[1:]] for row in tokens], "scores": [0.0, 1.0]}, []

    async def evaluate(self, *args, **kwargs):
        pass


if __name__ == "__main__":
    Numbers.cli()
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def first_tokens(api: FakeTrajectoryApi) -> list[int]:
    return [group["tokens"][0][0] for group in api.groups]


class Served:
    """`python made_of_numbers.py FIRST serve …`, killed at the end."""

    def __init__(self, directory: Path, tokenizer: Path, api: FakeTrajectoryApi, first: int, *flags: str) -> None:
        file = directory / "made_of_numbers.py"
        file.write_text(SCRIPT)
        command = [
            sys.executable, "-m", "atropos_tui", "run", str(file), str(first), "serve", "--env.tokenizer_name",
            str(tokenizer), "--env.rollout_server_url", api.url, "--env.use_wandb", "false", "--env.group_size", "2",
            *flags,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.kill()

    async def until(self, condition: Callable[[], object]) -> None:
        """A process takes seconds to begin, on a machine that is busy."""
        await until(lambda: condition() or self.process.poll() is not None, patience=90)
        assert self.process.returncode is None, self.process.communicate()[1]

    def kill(self) -> str:
        """What it said until it was killed."""
        self.process.send_signal(signal.SIGKILL)
        return self.process.communicate()[1]


def waiting_in(root: Path) -> int:
    """How many groups are in the outboxes under this root, which no process uses."""
    count = 0
    for path in (root / "outboxes").glob("*.db"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            count += database.execute("SELECT count(*) FROM groups WHERE status = 'pending'").fetchone()[0]
    return count


async def test_a_killed_process_loses_no_finished_group_and_its_successor_sends_them_first(
    root: Path, tmp_path: Path, tokenizer_dir: Path, api: FakeTrajectoryApi
):
    api.scored_error = 503
    with Served(tmp_path, tokenizer_dir, api, 100) as served:
        await served.until(lambda: api.refused_groups >= 3)
        served.kill()
    (config,) = (root / "outboxes").glob("*.config.yaml")
    assert "group_size: 2" in config.read_text()
    left = waiting_in(root)
    assert left >= 1
    api.scored_error = 0
    with Served(tmp_path, tokenizer_dir, api, 200) as served:
        await served.until(lambda: len(api.groups) == left + 3)
        assert f"{left} groups that an earlier process left are sent first" in served.kill()
    first, second = api.registrations
    assert first["run_id"] == second["run_id"]
    came = first_tokens(api)
    assert len(set(came)) == left + 3
    assert {item // 100 for item in came[:left]} == {1}
    assert sorted(came[left:]) == [201, 202, 203]


async def test_who_wants_it_in_memory_gets_no_file(
    root: Path, tmp_path: Path, tokenizer_dir: Path, api: FakeTrajectoryApi
):
    with Served(tmp_path, tokenizer_dir, api, 100, "--env.outbox_path", "None") as served:
        await served.until(lambda: len(api.groups) == 3)
    assert list(tmp_path.rglob("*.db")) == []  # noqa: ASYNC240  files are all that is looked at here


def test_processes_beside_each_other_have_files_of_their_own_and_the_same_after_a_restart(
    root: Path, make_env: MakeEnv
):
    first = outbox_path(make_env())
    assert first is not None
    assert first.parent == root / "outboxes"
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    held = Outbox(first)
    second = outbox_path(make_env())
    held.close()
    assert second is not None
    assert second != first
    assert outbox_path(make_env()) == first
    assert outbox_path(make_env(wandb_name="another")) not in (first, second)
    assert outbox_path(make_env(rollout_server_url="http://elsewhere:1")) not in (first, second)


def test_a_file_that_is_named_is_used(root: Path, make_env: MakeEnv, tmp_path: Path):
    assert outbox_path(make_env(outbox_path=str(tmp_path / "mine.db"))) == tmp_path / "mine.db"
    assert outbox_path(make_env(outbox_path=None)) is None
    assert not root.exists()


def test_where_no_file_can_be_made_the_outbox_is_in_memory_and_it_is_said(
    make_env: MakeEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(tmp_path / "file"))
    assert outbox_path(make_env()) is None
    assert "kept in memory" in caplog.text


async def test_what_was_made_for_another_training_is_not_sent_and_it_is_said_why(
    make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path
):
    """The trainer began anew, so it is not at the step that the group was made at."""
    path = tmp_path / "outbox.db"
    outbox = Outbox(path)
    body = EncodedGroup(b'{"tokens":[[7]]', gzipped=False, length=15, crc=0)
    for group_id, step in ((1, 300), (2, 4)):
        outbox.add(group_id, key=f"k{group_id}", item="old", rollouts=1, step=step, wall=1.0, body=body)
    outbox.close()
    api.step = api.starting_step = 5
    env = make_env()
    env.items = iter([])
    seen = RecordedEvents()
    env.attach(EventStream(seen), path)
    async with serving(env):
        await until(lambda: seen.of("group_delivered"))
        assert [event.group_id for event in seen.of("group_delivered")] == [2]
        (skipped,) = seen.of("group_skipped")
        assert (skipped.group_id, skipped.reason) == (1, "stale")
        assert skipped.detail == "made at step 300 of an earlier process, and the trainer is at 5"
    counts = env._runtime.stream.counts()
    assert counts.balanced
    assert counts.by_outcome[Outcome.IN_OUTBOX] == 0
    emptied = Outbox(path)
    assert emptied.depth() == 0
    emptied.close()
