"""The worker: a real process with a real environment, trajectory API and unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from atropos_tui.errors import UsageError
from atropos_tui.ledger.events import StateChanged
from atropos_tui.ledger.outcomes import Outcome, RunState
from atropos_tui.monitor.asker import asker
from atropos_tui.monitor.client import RefusedError, RunClient
from atropos_tui.monitor.discovery import find_run
from atropos_tui.monitor.recorded.recorded_run import RecordedRun
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.monitor.supervisor import ChildProcess, start_process
from tests.inference.small_tokenizer import small_tokenizer
from tests.process_state import is_alive

LIMIT = 60.0

# Scores need no model here: the way of groups is what is looked at. Each test adds or replaces methods.
ENVIRONMENT = """\
import asyncio, os, signal, subprocess, sys, time
from atropos_tui.runtime.base_env import BaseEnv


class Counting(BaseEnv):
    name = "counting"
    taken = 0

    async def get_next_item(self):
        self.taken += 1
        return f"item {self.taken}"

    async def collect_trajectories(self, item):
        await asyncio.sleep(0.02)
        return {"tokens": [[65, 66, 67]] * 4, "masks": [[-100, 66, 67]] * 4, "scores": [0.0, 1.0, 0.5, 0.25]}, []

    async def evaluate(self, *args, **kwargs):
        pass

"""


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    small_tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def trajectory_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With a trainer that takes nothing; the environments here set no off-policy limit."""
    log = tmp_path_factory.mktemp("api") / "log"
    with start_process([sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0"], log_path=log) as api:
        registration = {
            "wandb_group": "g", "wandb_project": "p", "batch_size": 8, "max_token_len": 64, "checkpoint_dir": "",
            "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 100,
        }  # fmt: skip
        httpx.post(f"{api.ready['url']}/register", json=registration, timeout=LIMIT).raise_for_status()
        # The first request for a batch is the sign that the trainer has started.
        httpx.get(f"{api.ready['url']}/batch", timeout=LIMIT).raise_for_status()
        yield api.ready["url"]


class Workers:
    """Starts workers on environment files in one directory, and ends what is left of them."""

    def __init__(self, directory: Path, tokenizer: Path, api_url: str) -> None:
        self.run_dir = directory / "run"
        self._directory = directory
        self._started: list[ChildProcess] = []
        self.flags = [
            "--env.tokenizer_name", str(tokenizer), "--env.rollout_server_url", api_url, "--env.use_wandb", "false",
            "--env.max_batches_offpolicy", "0", "--env.max_num_workers", "4",
        ]  # fmt: skip

    def file(self, methods: str = "", name: str = "counting.py") -> Path:
        path = self._directory / name
        path.write_text(ENVIRONMENT + textwrap.indent(textwrap.dedent(methods), "    "))
        return path

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "atropos_tui.worker", "--run-dir", str(self.run_dir), *options]

    def start(
        self, methods: str = "", *options: str, flags: tuple[str, ...] = (), detached: bool = False
    ) -> ChildProcess:
        child = start_process(
            self.command(*options),
            ["--", str(self.file(methods)), *self.flags, *flags],
            log_path=self._directory / "output.log",
            ready_timeout=LIMIT,
            detached=detached,
        )
        self._started.append(child)
        return child

    def refuse(self, *arguments: str) -> str:
        """The line with which a worker refuses these arguments."""
        with pytest.raises(UsageError) as refused:
            start_process(
                self.command(), ["--", *arguments], log_path=self._directory / "output.log", ready_timeout=LIMIT
            )
        return str(refused.value)

    @property
    def output(self) -> str:
        return (self._directory / "output.log").read_text()

    def end(self) -> None:
        for child in self._started:
            child.terminate(grace=2.0)


@pytest.fixture
def workers(tmp_path: Path, tokenizer: Path, trajectory_api: str) -> Iterator[Workers]:
    workers = Workers(tmp_path, tokenizer, trajectory_api)
    yield workers
    workers.end()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[ChildProcess], Any]]:
    async with AsyncExitStack() as stack:

        async def connect(child: ChildProcess) -> RunClient:
            return await stack.enter_async_context(RunClient(child.ready["socket"]))

        yield connect


async def until(client: RunClient, condition: Callable[[RunSnapshot], bool], what: str) -> RunSnapshot:
    """The first snapshot for which the condition holds."""
    snapshot = RunSnapshot()
    try:
        async with asyncio.timeout(LIMIT), aclosing(client.stream(20)) as snapshots:
            async for snapshot in snapshots:
                if condition(snapshot):
                    return snapshot
    except TimeoutError:
        raise AssertionError(f"never {what}: {snapshot.run}, {snapshot.ledger}") from None
    raise AssertionError(f"the worker ended before {what}")


async def gone(pid: int) -> None:
    deadline = time.monotonic() + LIMIT
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        await asyncio.sleep(0.02)


def delivered(snapshot: RunSnapshot) -> int:
    return snapshot.ledger.by_outcome[Outcome.DELIVERED]


async def test_a_run_is_watched_paused_stepped_resumed_and_stopped(workers: Workers, connect: Any) -> None:
    child = workers.start()
    client = await connect(child)
    assert child.ready["run_id"] == "run"
    running = await until(client, lambda snapshot: delivered(snapshot) >= 5, "five groups")
    assert (running.run.state, running.run.environment, running.run.pid) == (RunState.RUNNING, "Counting", child.pid)
    assert running.ledger.balanced
    assert running.run.headline == ""

    await client.pause()
    paused = await until(client, lambda snapshot: snapshot.run.state is RunState.PAUSED, "paused")
    assert paused.queue.in_flight == 0
    assert paused.queue.throttle == "paused"
    assert paused.run.headline == f"paused by {asker()}: nothing starts until it is resumed"
    assert (await client.summary()).headline == paused.run.headline

    await client.step_group()
    stepped = await until(client, lambda snapshot: delivered(snapshot) > delivered(paused), "one more")
    still = await until(client, lambda snapshot: snapshot.run.state is RunState.PAUSED, "paused again")
    assert still.ledger.started == paused.ledger.started + 1 == stepped.ledger.started

    await client.resume()
    await until(client, lambda snapshot: delivered(snapshot) >= delivered(paused) + 5, "five more groups")

    newest = (await client.groups(outcome=Outcome.DELIVERED, limit=1)).rows[0]
    detail = await client.group(newest.group_id)
    assert detail.rollouts[0].pieces == tuple(small_tokenizer().decode([token]) for token in (65, 66, 67))

    await client.stop()
    assert child.wait(LIMIT) == 0
    found = find_run(workers.run_dir)
    assert found is not None
    assert (found.alive, found.stale, found.worker.end_state) == (False, False, "finished")
    assert not (workers.run_dir / "control.sock").exists()
    with closing(RunFileReader(workers.run_dir / RUN_FILE)) as record:
        told = [event for event in record.events_of("state_changed") if isinstance(event, StateChanged)]
    assert {(event.state, event.paused_by) for event in told} >= {(RunState.PAUSED, asker()), (RunState.RUNNING, "")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "no file nowhere.py"),
        (["{broken}"], "SyntaxError"),
        (["{file}", "--env.group_sice", "4"], "did you mean --env.group_size?"),
        (["{file}", "--env.tokenizer_name", "/no/tokenizer"], "no tokenizer '/no/tokenizer'"),
    ],
)
def test_wrong_use_is_one_line_and_status_two(workers: Workers, arguments: list[str], words: str) -> None:
    broken = workers.file(name="broken.py")
    broken.write_text("def (\n")
    places = {"file": workers.file(), "broken": broken}
    line = workers.refuse(*(argument.format_map(places) for argument in arguments))
    assert words in line
    assert "\n" not in line
    assert f"atropos-tui worker: {line}" in workers.output
    assert "Traceback" not in workers.output
    assert not (workers.run_dir / "control.sock").exists()


def test_whoever_finds_its_file_finds_its_socket_even_before_the_monitor_has_started(tmp_path: Path) -> None:
    looked_at_early = """\
import os, sys
from pathlib import Path
from atropos_tui import worker
from atropos_tui.monitor.discovery import find_run
from atropos_tui.monitor.monitor_thread import MonitorThread

def look(monitor, remote=None):
    run = find_run(Path(sys.argv[1]))
    print(run is not None and run.alive and run.worker.pid == os.getpid(), flush=True)
    os._exit(0)

MonitorThread.start = look
worker.main(["--run-dir", sys.argv[1], "--", "env.py"])
"""
    done = subprocess.run(
        [sys.executable, "-c", looked_at_early, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "True\n", done.stderr


def test_a_run_directory_that_cannot_be_had_is_wrong_use(workers: Workers) -> None:
    workers.run_dir.write_text("a file")
    assert f"cannot write to {workers.run_dir}" in workers.refuse(str(workers.file()))


def test_the_exit_status_of_wrong_use_is_two(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "atropos_tui.worker", "--run-dir", str(tmp_path), "--", "nowhere.py"],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr == "atropos-tui worker: no file nowhere.py; give the path of an environment's Python file\n"


@pytest.mark.parametrize("name", ["run", "r" * 100], ids=["short", "too long for a socket"])
async def test_two_workers_cannot_share_a_directory(workers: Workers, name: str) -> None:
    workers.run_dir = workers.run_dir.with_name(name)
    workers.start()
    assert "another worker" in workers.refuse(str(workers.file()))


CRASHES = {
    "setup": """
        async def setup(self):
            raise KeyError("no such column")
    """,
    "constructor": """
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            raise KeyError("no such column")
    """,
}


@pytest.mark.parametrize("where", CRASHES)
async def test_a_crash_stays_visible_until_the_worker_is_told_to_stop(
    workers: Workers, connect: Any, where: str
) -> None:
    child = workers.start(CRASHES[where])
    client = await connect(child)
    crashed = await until(client, lambda snapshot: snapshot.run.state is RunState.CRASHED, "crashed")
    assert crashed.run.why_ended == "KeyError: 'no such column'"
    assert "counting.py" in crashed.run.traceback
    assert crashed.run.headline == "crashed: KeyError: 'no such column'"
    with pytest.raises(RefusedError, match="the run has ended"):
        await client.pause()
    assert child.poll() is None
    await client.stop()
    assert child.wait(LIMIT) == 1


async def test_nobody_looks_so_a_crashed_worker_exits_at_once(workers: Workers) -> None:
    child = workers.start(CRASHES["setup"], "--exit-when-done")
    assert child.wait(LIMIT) == 1
    assert json.loads((workers.run_dir / "worker.json").read_text())["why"] == "KeyError: 'no such column'"


async def test_a_missing_trajectory_api_is_waited_for_by_name(workers: Workers, connect: Any, tmp_path: Path) -> None:
    client = await connect(workers.start(flags=("--env.rollout_server_url", "http://127.0.0.1:9")))
    waiting = await until(client, lambda snapshot: "http://127.0.0.1:9" in snapshot.run.headline, "waiting")
    assert waiting.run.state is RunState.STARTING


SLOW = """
    async def collect_trajectories(self, item):
        await asyncio.sleep(300)
"""


async def test_single_groups_are_cancelled_and_requeued_and_an_evaluation_is_started(
    workers: Workers, connect: Any
) -> None:
    client = await connect(workers.start(SLOW, flags=("--env.eval_handling", "NONE")))
    await until(client, lambda snapshot: snapshot.queue.in_flight == 4, "four groups in flight")
    assert await client.cancel_group(1)
    failed = await until(client, lambda snapshot: snapshot.ledger.by_outcome[Outcome.FAILED] == 1, "a cancelled group")
    assert [(row.group_id, row.reason, row.error) for row in failed.skipped.recent if row.outcome == "failed"] == [
        (1, "cancelled", "cancelled by the operator")
    ]
    assert await client.requeue_group(2)
    again = await until(client, lambda snapshot: snapshot.ledger.by_outcome[Outcome.REQUEUED] == 1, "a requeued group")
    assert again.ledger.balanced
    assert [row.item for row in (await client.groups(reason="operator")).rows] == ["item 2"]
    with pytest.raises(RefusedError, match="group 1 is not in flight; only a group that is still being made") as gone:
        await client.cancel_group(1)
    assert gone.value.status == 409
    assert await client.evaluate_now()
    await until(client, lambda snapshot: bool(snapshot.evals.rows), "an evaluation")


async def test_the_configuration_of_a_run_tells_where_its_values_are_from_and_keeps_secrets(
    workers: Workers, connect: Any, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("env: {total_steps: 7}\nopenai: {base_url: 'http://me:word@nowhere/v1', api_key: sesame}\n")
    child = workers.start(flags=("--config", str(file), "--env.group_size", "4"))
    client = await connect(child)
    running = await until(client, lambda snapshot: delivered(snapshot) > 0, "a group")
    rows = {row.name: (row.value, row.source) for row in await client.config()}
    assert rows["env.group_size"] == ("4", "command line")
    assert rows["env.total_steps"] == ("7", "settings.yaml")
    assert rows["env.max_token_length"] == ("2048", "class default")
    assert rows["env.batch_size"] == ("8", "the trainer")
    assert rows["openai.base_url"] == ("http://***@nowhere/v1", "settings.yaml")
    assert rows["openai.api_key"] == ("***", "settings.yaml")
    assert rows["slurm"] == ("False", "class default")
    await client.stop()
    assert child.wait(LIMIT) == 0
    recorded = RecordedRun(workers.run_dir / "run.db", lambda ids: [])
    try:
        assert {row.name: (row.value, row.source) for row in await recorded.config()} == rows
    finally:
        await recorded.close()
    merged = (workers.run_dir / "config.yaml").read_text()
    assert yaml.safe_load(merged)["env"]["total_steps"] == 7
    assert "sesame" not in merged
    assert b"sesame" not in (workers.run_dir / "run.db").read_bytes()
    assert running.run.environment == "Counting"


HOLDS_THE_LOOP = """
    async def collect_trajectories(self, item):
        time.sleep(120)  # this line holds the loop
"""


async def test_code_that_holds_the_loop_is_named_while_everything_else_answers(workers: Workers, connect: Any) -> None:
    child = workers.start(HOLDS_THE_LOOP)
    client = await connect(child)
    held = await until(client, lambda snapshot: snapshot.run.loop_held_by != "", "held")
    source = workers.file(HOLDS_THE_LOOP).read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(source) if "this line holds the loop" in text)
    assert held.run.loop_held_by == f"{workers.file(HOLDS_THE_LOOP)}:{line} in collect_trajectories"
    assert held.run.loop_lag >= 1.0
    assert "loop_held" in [alert.name for alert in held.run.alerts]
    assert (await client.groups()).total == 0
    assert not await client.cancel_group(held.queue.rows[0].group_id)


async def test_code_that_never_lets_the_run_end_is_abandoned_after_the_grace(workers: Workers, connect: Any) -> None:
    child = workers.start(HOLDS_THE_LOOP, "--grace", "0.5")
    client = await connect(child)
    await until(client, lambda snapshot: snapshot.queue.in_flight > 0, "in flight")
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(LIMIT) == 1
    assert "abandoned" in (workers.run_dir / "worker.log").read_text()
    found = find_run(workers.run_dir)
    assert found is not None
    assert not found.stale
    assert not (workers.run_dir / "control.sock").exists()


async def test_a_second_signal_doesnt_wait_for_what_is_in_flight(workers: Workers, connect: Any) -> None:
    child = workers.start(SLOW)
    client = await connect(child)
    await until(client, lambda snapshot: snapshot.queue.in_flight == 4, "in flight")
    os.kill(child.pid, signal.SIGTERM)
    finishing = await until(client, lambda snapshot: snapshot.run.state is RunState.FINISHING, "finishing")
    assert finishing.run.headline.startswith("finishing: 4 groups in flight")
    began = time.monotonic()
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(LIMIT) == 0
    assert time.monotonic() - began < LIMIT


async def test_the_worker_outlives_the_terminal(workers: Workers, connect: Any) -> None:
    child = workers.start(detached=True)
    client = await connect(child)
    before = await until(client, lambda snapshot: delivered(snapshot) > 0, "a group")
    os.kill(child.pid, signal.SIGHUP)
    await until(client, lambda snapshot: delivered(snapshot) > delivered(before) + 5, "more groups")
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(LIMIT) == 0


async def test_an_environment_that_takes_the_signals_for_itself_doesnt_get_them(workers: Workers, connect: Any) -> None:
    child = workers.start(
        """
        async def setup(self):
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)
        """
    )
    client = await connect(child)
    await until(client, lambda snapshot: delivered(snapshot) > 0, "a group")
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(LIMIT) == 0


OWNER = """
import json, sys, signal
from pathlib import Path
from atropos_tui.monitor.supervisor import start_process
split = sys.argv.index("--")
child = start_process(sys.argv[2:split], sys.argv[split:], log_path=Path(sys.argv[1]))
print(json.dumps(dict(child.ready)), flush=True)
signal.pause()
"""

STARTS_A_PROCESS = """
    async def setup(self):
        self.helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])

    async def get_next_item(self):
        return f"helper {self.helper.pid}"

    async def collect_trajectories(self, item):
        time.sleep(120)
"""


async def test_nothing_survives_an_owner_that_is_killed(workers: Workers, connect: Any, tmp_path: Path) -> None:
    command = [*workers.command("--grace", "1"), "--", str(workers.file(STARTS_A_PROCESS)), *workers.flags]
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(tmp_path / "output.log"), *command, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    ready = json.loads(await owner.stdout.readline())
    try:
        async with RunClient(ready["socket"]) as client:
            snapshot = await until(client, lambda snapshot: snapshot.queue.in_flight > 0, "in flight")
    finally:
        owner.kill()
        await owner.wait()
    await gone(ready["pid"])
    await gone(int(snapshot.queue.rows[0].item.removeprefix("helper ")))


async def test_a_read_only_run_can_only_be_ended_by_its_owner(workers: Workers, connect: Any) -> None:
    child = workers.start("", "--read-only")
    client = await connect(child)
    with pytest.raises(RefusedError, match="read-only"):
        await client.stop()
    await until(client, lambda snapshot: delivered(snapshot) > 0, "a group")
    assert child.terminate() == 0


async def test_a_killed_worker_is_stale_and_another_goes_on_in_its_directory(workers: Workers, connect: Any) -> None:
    child = workers.start()
    client = await connect(child)
    await until(client, lambda snapshot: delivered(snapshot) > 0, "a group")
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(LIMIT) == -signal.SIGKILL
    found = find_run(workers.run_dir)
    assert found is not None
    assert found.stale

    another = await connect(workers.start())
    again = await until(another, lambda snapshot: delivered(snapshot) > 0, "a group")
    assert again.run.run_id == "run"
    assert again.ledger.balanced
    numbers = [row.group_id for row in (await another.groups(limit=200)).rows]
    assert len(numbers) == len(set(numbers))


async def test_what_the_environment_logs_is_in_the_log_and_on_the_screen(workers: Workers, connect: Any) -> None:
    client = await connect(
        workers.start(
            """
            async def setup(self):
                import logging
                try:
                    {}["absent"]
                except KeyError:
                    logging.getLogger("my.env").exception("cannot read %d rows", 17)
            """
        )
    )
    snapshot = await until(client, lambda snapshot: snapshot.logs.errors > 0, "an error logged")
    (row,) = (row for row in snapshot.logs.rows if row.logger == "my.env")
    assert (row.level, row.text) == ("ERROR", "cannot read 17 rows")
    assert "KeyError: 'absent'" in row.traceback
    assert "cannot read 17 rows" in (workers.run_dir / "worker.log").read_text()
