"""The trainer as an ordinary client of the trajectory API: real processes of all three, and a server that hangs."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.supervisor import ChildProcess
from tests.pocket.conftest import Start
from tests.ports import held_port

API = "atropos_tui.trajectory_api"
POLICY = "atropos_tui.pocket.server"
PROMPT = [3, 4, 5, 2]
GROUP_SIZE = 4


def scored_group(replies: list[list[int]], **fields: Any) -> dict[str, Any]:
    """A group as environments send it: replies to "abc>" that a uniform policy would have given."""
    return {
        "tokens": [PROMPT + reply for reply in replies],
        "masks": [[-100] * len(PROMPT) + reply for reply in replies],
        "scores": [float(place) for place in range(len(replies))],
        "inference_logprobs": [[1.0] * len(PROMPT) + [-math.log(29)] * len(reply) for reply in replies],
    } | fields


GROUP = scored_group([[5, 4, 3, 0], [5, 0], [6, 6, 6], [0]])


class Trainer:
    """A trainer process, and what it tells of itself."""

    def __init__(self, process: ChildProcess, status_file: Path) -> None:
        self.process = process
        self._status_file = status_file

    @property
    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._status_file.read_text()) if self._status_file.exists() else {}
        return told

    def wait_for(self, holds: Callable[[dict[str, Any]], object], within: float = 60.0) -> dict[str, Any]:
        """The first status for which the condition holds."""
        deadline = time.monotonic() + within
        while True:
            status = self.status
            if status and holds(status):
                return status
            assert self.process.poll() is None, self.process.last_lines()
            assert time.monotonic() < deadline, status
            time.sleep(0.02)


@pytest.fixture
def train(start: Start, tmp_path: Path) -> Callable[..., Trainer]:
    def start_trainer(api: str, inference: str, *arguments: str) -> Trainer:
        status_file = tmp_path / "status.json"
        process = start(
            "atropos_tui.pocket.trainer", "--api", api, "--inference", inference, "--status-file", str(status_file),
            "--batch-size", str(2 * GROUP_SIZE), *arguments,
        )  # fmt: skip
        return Trainer(process, status_file)

    return start_trainer


@pytest.fixture
def free_ports() -> Iterator[list[str]]:
    with held_port() as first, held_port() as second:
        yield [str(first), str(second)]


@pytest.fixture
def hanging_url() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def url_of(process: ChildProcess) -> str:
    return str(process.ready["url"])


def send(api_url: str, *groups: dict[str, Any]) -> None:
    """Send groups as soon as the trainer has registered."""
    with httpx.Client(base_url=api_url, trust_env=False, timeout=60) as http:
        deadline = time.monotonic() + 60.0
        while http.get("/info").json()["batch_size"] != 2 * GROUP_SIZE:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for group in groups:
            http.post("/scored_data", json=group).raise_for_status()


def weight_version(inference_url: str) -> int:
    version: int = httpx.get(f"{inference_url}/weight_info", trust_env=False, timeout=60).json()["weight_version"]
    return version


def first_logprob(inference_url: str) -> float:
    """Of the likeliest first letter of the reply to "abc>"."""
    asked = {"prompt": "abc>", "max_tokens": 1, "temperature": 0.0, "logprobs": 0}
    answer = httpx.post(f"{inference_url}/generate", json=asked, trust_env=False, timeout=60)
    (logprob,) = answer.json()["logprobs"][0][0][0].values()
    return float(logprob)


@pytest.mark.parametrize("by_file", [True, False])
def test_it_trains_on_every_group_it_takes_and_pushes_the_weights(
    start: Start, train: Callable[..., Trainer], tmp_path: Path, by_file: bool
) -> None:
    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    trainer = train(api, policy, *(["--weights-dir", str(tmp_path)] if by_file else []))
    send(api, *[GROUP] * 7)
    status = trainer.wait_for(lambda status: status["step"] == 3)
    assert (status["groups_received"], status["sequences_received"], status["groups_unusable"]) == (6, 24, 0)
    assert status["mean_score"] == 1.5
    assert status["entropy"] < math.log(29)
    for metric in ("loss", "kl", "clip_fraction", "gradient_norm", "waiting_seconds"):
        assert math.isfinite(status[metric])
    assert status["weight_version"] == weight_version(policy) == 3
    assert (tmp_path / "policy.npz").exists() == by_file
    assert abs(first_logprob(policy) + math.log(29)) > 1e-4


def test_it_waits_for_servers_that_are_not_there_yet_and_says_for_which(
    start: Start, train: Callable[..., Trainer], free_ports: list[str]
) -> None:
    api_port, policy_port = free_ports
    api, policy = (f"http://127.0.0.1:{port}" for port in free_ports)
    trainer = train(api, policy)
    trainer.wait_for(lambda status: status["waiting_for"].startswith(f"inference server at {policy} "))
    start(POLICY, "--port", policy_port)
    trainer.wait_for(lambda status: status["waiting_for"].startswith(f"trajectory API at {api} "))
    start(API, "--port", api_port)
    trainer.wait_for(lambda status: not status["waiting_for"])
    send(api, GROUP, GROUP)
    assert trainer.wait_for(lambda status: status["step"] == 1)["groups_received"] == 2


def test_it_registers_again_when_the_trajectory_api_was_restarted(
    start: Start, train: Callable[..., Trainer], free_ports: list[str]
) -> None:
    first_api, policy = start(API, "--port", free_ports[0]), url_of(start(POLICY, "--port", "0"))
    api = url_of(first_api)
    trainer = train(api, policy)
    send(api, GROUP, GROUP)
    trainer.wait_for(lambda status: status["step"] == 1)
    first_api.terminate()
    trainer.wait_for(lambda status: "trajectory API" in status["waiting_for"])
    start(API, "--port", free_ports[0])
    trainer.wait_for(lambda status: not status["waiting_for"])
    send(api, GROUP, GROUP)
    assert trainer.wait_for(lambda status: status["step"] == 2)["groups_received"] == 4


def test_a_group_of_another_tokenizer_is_counted_and_left_out(start: Start, train: Callable[..., Trainer]) -> None:
    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    trainer = train(api, policy)
    send(api, GROUP, scored_group([[5000], [6000], [7000], [0]]))
    status = trainer.wait_for(lambda status: status["step"] == 1)
    assert (status["groups_received"], status["groups_unusable"]) == (2, 1)
    assert status["loss"] is not None


def test_told_to_stop_it_ends_in_order_and_leaves_its_counts(start: Start, train: Callable[..., Trainer]) -> None:
    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    trainer = train(api, policy)
    send(api, *[GROUP] * 40)
    trainer.wait_for(lambda status: status["step"] >= 2)
    os.kill(trainer.process.pid, signal.SIGTERM)
    assert trainer.process.wait(60.0) == 0
    status = trainer.status
    assert status["groups_received"] == 2 * status["step"]
    assert httpx.get(f"{api}/status", trust_env=False, timeout=60).json()["current_step"] == status["step"]


def test_a_server_that_hangs_cannot_keep_it_from_ending(
    start: Start, train: Callable[..., Trainer], hanging_url: str
) -> None:
    trainer = train(hanging_url, url_of(start(POLICY, "--port", "0")))
    trainer.wait_for(lambda status: status["weight_version"] == 0)
    os.kill(trainer.process.pid, signal.SIGTERM)
    assert trainer.process.wait(60.0) == 0


def test_a_server_that_takes_no_weights_is_named_and_ends_it(start: Start, train: Callable[..., Trainer]) -> None:
    api = url_of(start(API, "--port", "0"))
    trainer = train(api, api)
    assert trainer.process.wait(60.0) == 2
    assert trainer.process.last_lines(1)[0].startswith(f"inference server at {api} refuses POST /update_weights (404)")


def test_it_goes_on_from_its_checkpoint(start: Start, train: Callable[..., Trainer], tmp_path: Path) -> None:
    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    checkpointing = ["--checkpoint-dir", str(tmp_path), "--checkpoint-every", "2"]
    first = train(api, policy, "--num-steps", "3", *checkpointing)
    send(api, *[GROUP] * 6)
    assert first.process.wait(60.0) == 0
    learned = first_logprob(policy)
    assert abs(learned + math.log(29)) > 1e-4

    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    second = train(api, policy, "--num-steps", "4", *checkpointing)
    second.wait_for(lambda status: status["pid"] == second.process.pid and status["weight_version"] == 3)
    assert first_logprob(policy) == pytest.approx(learned, abs=1e-5)
    send(api, GROUP, GROUP)
    assert second.process.wait(60.0) == 0
    assert (second.status["step"], second.status["groups_received"]) == (4, 2)


def test_a_checkpoint_of_something_else_is_refused_before_it_is_ready(
    train: Callable[..., Trainer], tmp_path: Path
) -> None:
    (tmp_path / "trainer.npz").write_bytes(b"PK, but not really")
    with pytest.raises(UsageError, match=r"cannot go on from .*trainer\.npz"):
        train("http://127.0.0.1:9", "http://127.0.0.1:9", "--checkpoint-dir", str(tmp_path))


def test_it_ends_after_the_steps_it_was_given(start: Start, train: Callable[..., Trainer]) -> None:
    api, policy = url_of(start(API, "--port", "0")), url_of(start(POLICY, "--port", "0"))
    trainer = train(api, policy, "--num-steps", "1")
    send(api, *[GROUP] * 4)
    assert trainer.process.wait(60.0) == 0
    assert (trainer.status["step"], weight_version(policy)) == (1, 1)
