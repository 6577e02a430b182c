"""What the journal keeps over a restart, and what happens when it cannot be written."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.supervisor import ChildProcess
from atropos_tui.runtime.encoding import encode_group
from atropos_tui.trajectory_api.journal import Journal
from tests.trajectory_api.bodies import GROUP_KEYS, environment, group, mark_of, registration
from tests.trajectory_api.conftest import Api

Restart = Callable[[], Any]


@pytest.fixture
def restart(make_api: Callable[..., Api], tmp_path: Path) -> Restart:
    """A server on the test's journal; the one before it has ended."""
    before: list[Api] = []

    def start() -> Api:
        if before:
            before.pop().app.close()
        before.append(make_api(journal=tmp_path / "api.journal"))
        return before[-1]

    return start


async def test_a_restart_resumes_step_environments_queue_and_buffers(restart: Restart) -> None:
    api = restart()
    await api.start_run(starting_step=5)
    env_id = await api.register_env(desired_name="gsm8k", weight=3.0, control_url="http://node7:1")
    for mark in range(5):
        await api.post("/scored_data", json=group(4, mark=mark, env_id=env_id))
    await api.post("/scored_data", json=group(1, mark=50, env_id=env_id))
    assert len((await api.get("/batch")).json()["batch"]) == 2

    api = restart()
    assert (await api.get("/status")).json() == {"current_step": 6, "queue_size": 3}
    assert (await api.get("/info")).json() == {"batch_size": 8, "max_token_len": 512}
    (row,) = (await api.get("/inspect/environments")).json()["environments"]
    assert (row["wandb_name"], row["control_url"], row["buffered_sequences"]) == ("gsm8k_0", "http://node7:1", 1)
    assert row["counts"]
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [2, 3]
    answer = (await api.post("/scored_data", json=group(3, mark=51, env_id=env_id))).json()
    assert answer == {"status": "buffered", "buffer_size": 0}
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [4, 50, 51]


@pytest.mark.parametrize("shape", ["json", "gzip of ours", "gzip of upstream's"])
async def test_a_group_comes_out_of_the_journal_as_it_went_in(restart: Restart, shape: str) -> None:
    rows = [[sequence * 997 + position * 7 for position in range(500)] for sequence in range(4)]
    sent = group(4, tokens=rows, masks=rows)
    plain = json.dumps(sent).encode()
    ours = encode_group(sent).with_env_id(None)
    body = {"json": plain, "gzip of ours": ours, "gzip of upstream's": gzip.compress(plain)}[shape]
    api = restart()
    await api.start_run(batch_size=4)
    await api.post("/scored_data", content=body, headers={} if shape == "json" else {"content-encoding": "gzip"})
    api = restart()
    for accepted in ("gzip", "identity"):
        (received,) = (await api.get("/batch", headers={"accept-encoding": accepted})).json()["batch"]
        assert received.items() >= sent.items()
        assert set(received) == GROUP_KEYS
        await api.post("/scored_data", content=plain)


async def test_a_set_that_left_its_buffer_stays_in_the_queue_over_a_restart(restart: Restart) -> None:
    api = restart()
    await api.start_run(batch_size=4)
    env_id = await api.register_env(group_size=4)
    for size in (3, 1):
        await api.post("/scored_data", json=group(size, env_id=env_id))
    api = restart()
    assert (await api.get("/status")).json()["queue_size"] == 2
    assert (await api.get("/inspect/buffers")).json() == {"buffers": []}


async def test_keys_are_known_over_a_restart_delivered_or_not(restart: Restart) -> None:
    api = restart()
    await api.start_run(batch_size=4)
    env_id = await api.register_env()
    first = {"idempotency-key": "run:1"}
    await api.post("/scored_data", json=group(4), headers=first)
    assert (await api.get("/batch")).json()["batch"] is not None
    partial = {"idempotency-key": "run:2"}
    await api.post("/scored_data", json=group(3, env_id=env_id), headers=partial)
    api = restart()
    assert (await api.post("/scored_data", json=group(4), headers=first)).json() == {"status": "received"}
    answer = (await api.post("/scored_data", json=group(3, env_id=env_id), headers=partial)).json()
    assert answer == {"status": "buffered", "buffer_size": 3}
    assert (await api.get("/status")).json()["queue_size"] == 0


async def test_the_latest_example_is_known_over_restarts_delivered_or_not(restart: Restart) -> None:
    api = restart()
    await api.start_run()
    for mark in range(4):
        await api.post("/scored_data", json=group(4, mark=mark))
    for left in (2, 0):
        await api.get("/batch")
        api = restart()
        assert (await api.get("/status")).json()["queue_size"] == left
        assert mark_of((await api.get("/latest_example")).json()) == 3
    await api.get("/reset_data")
    assert mark_of((await api.get("/latest_example")).json()) == 3
    api = restart()
    assert mark_of((await api.get("/latest_example")).json()) == 3


async def test_the_latest_example_is_the_last_that_entered_the_queue(restart: Restart) -> None:
    api = restart()
    await api.start_run()
    env_id = await api.register_env(group_size=4)
    for mark, size in ((1, 4), (2, 3), (3, 1), (4, 1)):
        await api.post("/scored_data", json=group(size, mark=mark, env_id=env_id))
    assert mark_of((await api.get("/latest_example")).json()) == 3
    await api.get("/batch")
    api = restart()
    assert mark_of((await api.get("/latest_example")).json()) == 3


async def test_a_reset_empties_the_journal_too(restart: Restart) -> None:
    api = restart()
    await api.start_run(starting_step=5)
    await api.register_env()
    await api.post("/scored_data", json=group(4))
    await api.get("/reset_data")
    api = restart()
    assert (await api.get("/status")).json() == {"current_step": 0, "queue_size": 0}
    assert (await api.get("/info")).json()["batch_size"] == -1
    assert (await api.get("/inspect/environments")).json() == {"environments": []}


def test_a_journal_that_cannot_be_written_refuses_groups_and_says_so(
    start_server: Callable[..., ChildProcess], tmp_path: Path
) -> None:
    """As on a full disk: the operating system takes no more bytes into the process's files."""
    server = start_server("--journal", str(tmp_path / "api.journal"))
    with httpx.Client(base_url=str(server.ready["url"]), timeout=60, trust_env=False) as client:
        client.post("/register", json=registration(batch_size=4))
        assert client.post("/scored_data", json=group(4, mark=1)).json() == {"status": "received"}
        before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (300_000, -1))
        refused = client.post("/scored_data", json=group(4, mark=2, images="x" * 400_000))
        assert refused.status_code == 503
        assert "cannot be written" in refused.json()["detail"]
        assert client.get("/status").json()["queue_size"] == 1
        assert client.get("/inspect").json()["journal_trouble"]
        assert "trajectory_api_journal_failing 1\n" in client.get("/metrics").text
        assert mark_of(client.get("/batch").json()["batch"][0]) == 1
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
        assert client.post("/scored_data", json=group(4, mark=3)).json() == {"status": "received"}
        assert client.get("/inspect").json()["journal_trouble"] == ""
        assert "trajectory_api_journal_failing 0\n" in client.get("/metrics").text
    server.terminate()
    restarted = start_server("--journal", str(tmp_path / "api.journal"))
    assert httpx.get(f"{restarted.ready['url']}/status", timeout=60).json() == {"current_step": 1, "queue_size": 1}


def test_two_servers_cannot_use_one_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "api.journal")
    try:
        with pytest.raises(UsageError, match="end the server that uses it"):
            Journal(tmp_path / "api.journal")
    finally:
        journal.close()


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("something else, long enough to be looked at as a header of a database" * 10)
    with pytest.raises(UsageError, match="holds something else"):
        Journal(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name)")
    with pytest.raises(UsageError, match="holds something else"):
        Journal(other)
    with sqlite3.connect(other) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("people",)]


def test_groups_that_were_accepted_survive_sigkill_and_come_out_once(
    start_server: Callable[..., ChildProcess], tmp_path: Path
) -> None:
    """Four senders post 5,000 groups, the server is killed in the middle; every group that got a 2xx comes out once."""
    server = start_server("--journal", str(tmp_path / "api.journal"))
    url = str(server.ready["url"])
    httpx.post(f"{url}/register", json=registration(batch_size=8), timeout=60)
    accepted: list[int] = []
    uncertain: list[int] = []
    enough = threading.Event()

    def send(marks: range) -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            for mark in marks:
                try:
                    answer = client.post("/scored_data", json=group(1, mark=mark))
                except httpx.TransportError:
                    uncertain.append(mark)
                    return
                assert answer.json() == {"status": "received"}
                accepted.append(mark)
                if len(accepted) == 2500:
                    enough.set()

    senders = [threading.Thread(target=send, args=(range(first, 5000, 4),)) for first in range(4)]
    for sender in senders:
        sender.start()
    assert enough.wait(300)
    os.kill(server.pid, signal.SIGKILL)
    for sender in senders:
        sender.join()
    assert 2500 <= len(accepted) < 5000

    url = str(start_server("--journal", str(tmp_path / "api.journal")).ready["url"])
    with httpx.Client(base_url=url, timeout=60) as client:
        assert client.get("/status").json()["queue_size"] >= len(accepted)
        client.post("/register", json=registration(batch_size=1))
        came: list[int] = []
        while (batch := client.get("/batch").json()["batch"]) is not None:
            came += map(mark_of, batch)
    assert len(came) == len(set(came))
    assert set(accepted) <= set(came) <= set(accepted) | set(uncertain)


def test_sigterm_writes_everything_and_ends(start_server: Callable[..., ChildProcess], tmp_path: Path) -> None:
    journal = str(tmp_path / "run" / "trajectory_api.journal")
    server = start_server("--run-dir", str(tmp_path / "run"))
    with httpx.Client(base_url=str(server.ready["url"]), timeout=60) as client:
        client.post("/register", json=registration(batch_size=4))
        client.get("/batch")
        client.post("/register-env", json=environment())
        for mark in range(3):
            client.post("/scored_data", json=group(4, mark=mark, env_id=0))
        client.get("/batch")
    server.terminate()
    with httpx.Client(base_url=str(start_server("--journal", journal).ready["url"]), timeout=60) as client:
        assert client.get("/status").json() == {"current_step": 1, "queue_size": 2}
