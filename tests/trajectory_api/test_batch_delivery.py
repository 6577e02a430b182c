"""Batches over real sockets: one a call, oldest first, and gone from the queue only when they were received."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from atropos_tui.monitor.supervisor import ChildProcess
from tests.trajectory_api.bodies import group, mark_of, registration

StartServer = Callable[..., ChildProcess]


@pytest.fixture
def server(start_server: StartServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=str(start_server().ready["url"]), timeout=60, trust_env=False) as client:
        yield client


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The condition's first true value. Raises AssertionError when it stays false."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"{condition} stayed false")


def test_one_batch_a_call_oldest_first_and_the_step_counts_those_delivered(server: httpx.Client) -> None:
    server.post("/register", json=registration(batch_size=8, starting_step=10))
    for mark in range(6):
        server.post("/scored_data", json=group(4, mark=mark))
    for step, marks in ((11, [0, 1]), (12, [2, 3]), (13, [4, 5])):
        assert server.get("/status").json()["current_step"] == step - 1
        assert [mark_of(received) for received in server.get("/batch").json()["batch"]] == marks
        until(lambda step=step: server.get("/status").json()["current_step"] == step)
    assert server.get("/batch").json() == {"batch": None}


@pytest.mark.parametrize("accept", ["gzip", "identity"])
def test_a_batch_whose_client_goes_away_is_put_back(server: httpx.Client, accept: str) -> None:
    """The answer is larger than all buffers of the connection, so that the server can tell that it did not arrive."""
    server.post("/register", json=registration(batch_size=8))
    noise = [[index * 7919 % 1_000_003 / 7 for index in range(100_000)] for _ in range(4)]
    ones = [[1] * 100_000] * 4
    long = {"tokens": ones, "masks": ones, "inference_logprobs": noise, "scores": [0.0] * 4}
    for mark in range(2):
        body = json.dumps({**long, "images": mark}).encode()
        server.post("/scored_data", content=gzip.compress(body, 1), headers={"content-encoding": "gzip"}, timeout=60)

    address = urlsplit(str(server.base_url))
    with socket.socket() as trainer:
        trainer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        trainer.connect((address.hostname, address.port))
        trainer.sendall(f"GET /batch HTTP/1.1\r\nhost: x\r\naccept-encoding: {accept}\r\n\r\n".encode())
        assert trainer.recv(1000).startswith(b"HTTP/1.1 200")
        assert server.get("/inspect/batches").json()["in_delivery"] == 1
        assert server.get("/status").json() == {"current_step": 0, "queue_size": 0}

    until(lambda: server.get("/status").json()["queue_size"] == 2)
    assert server.get("/inspect/batches").json()["interrupted"] == 1
    assert server.get("/status").json()["current_step"] == 0
    batch = server.get("/batch", timeout=60).json()["batch"]
    assert [received["images"] for received in batch] == [0, 1]
    assert batch[0]["inference_logprobs"] == noise


def test_two_trainers_never_get_the_same_group(server: httpx.Client) -> None:
    server.post("/register", json=registration(batch_size=4))
    for mark in range(20):
        server.post("/scored_data", json=group(4, mark=mark))
    with httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as other:
        marks = [mark_of(client.get("/batch").json()["batch"][0]) for _ in range(10) for client in (server, other)]
    assert sorted(marks) == list(range(20))


def test_a_deflated_queue_and_a_fresh_one_give_the_same_batch(server: httpx.Client) -> None:
    """The deflater works in quiet moments; what a trainer gets doesn't depend on whether it has."""
    server.post("/register", json=registration(batch_size=8))
    rows = [[index * 7919 % 32_000 for index in range(2000)] for _ in range(4)]
    sent = {"tokens": rows, "masks": rows, "scores": [0.0, 1.0, 2.0, 3.0]}
    size = len(json.dumps(sent))
    for _ in range(2):
        server.post("/scored_data", json=sent)
    until(lambda: 0 < server.get("/inspect/queue").json()["bytes"] < 2 * 0.6 * size)
    for _ in range(2):
        server.post("/scored_data", json=sent)
    first, second = (server.get("/batch").json()["batch"] for _ in range(2))
    assert first == second
    assert first[0]["tokens"] == rows
