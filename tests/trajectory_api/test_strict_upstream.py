"""`--strict-upstream` beside upstream's own server: the same requests to both, the same answers from both."""

from __future__ import annotations

import json
import math
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from atropos_tui.monitor.supervisor import ChildProcess
from tests.ports import held_port
from tests.trajectory_api.bodies import environment, group, registration
from tests.trajectory_api.test_batch_delivery import until

Request = tuple[str, str, Any]


class BothServers:
    """Upstream's server and ours; `ask` sends a request to each and compares what they say."""

    def __init__(self, upstream: httpx.Client, ours: httpx.Client) -> None:
        self.upstream = upstream
        self.ours = ours

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Upstream's answer. Raises AssertionError when ours differs."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        answers = [
            client.request(method, path, content=content, headers=headers) for client in (self.upstream, self.ours)
        ]
        theirs, ours = (_comparable(answer) for answer in answers)
        assert ours == theirs, (method, path, body)
        return theirs


@pytest.fixture(scope="module")
def upstream_url(upstream_python: str) -> Iterator[str]:
    command = [str(Path(upstream_python).with_name("run-api")), "--host", "127.0.0.1", "--port"]
    with (
        held_port() as port,
        subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: _answers(url), seconds=120)
            yield url
        finally:
            server.kill()  # or it would be waited for


@pytest.fixture
def both(upstream_url: str, start_server: Callable[..., ChildProcess]) -> Iterator[BothServers]:
    ours_url = str(start_server("--strict-upstream").ready["url"])
    # Upstream's server closes a connection after an error without saying so.
    one_each = httpx.Limits(max_keepalive_connections=0)
    with (
        httpx.Client(base_url=upstream_url, trust_env=False, timeout=60, limits=one_each) as upstream,
        httpx.Client(base_url=ours_url, trust_env=False, timeout=60) as ours,
    ):
        upstream.get("/reset_data")
        yield BothServers(upstream, ours)


@pytest.mark.parametrize("seed", range(6))
def test_random_requests_get_upstreams_answers(both: BothServers, seed: int) -> None:
    for request in script(random.Random(seed), length=150):
        both.ask(*request)


def test_twenty_groups_make_the_step_jump_and_come_newest_first(both: BothServers) -> None:
    both.ask("POST", "/register", registration(batch_size=4))
    for mark in range(20):
        both.ask("POST", "/scored_data", group(4, mark=mark))
    assert both.ask("GET", "/batch")[1]["batch"][0]["tokens"][0][0] == 19
    assert both.ask("GET", "/status")[1] == {"current_step": 20, "queue_size": 0}
    for _ in range(20):
        last = both.ask("GET", "/batch")
    assert last[1] == {"batch": None}


def test_a_second_registration_counts_for_nothing(both: BothServers) -> None:
    both.ask("POST", "/register", registration(batch_size=4))
    both.ask("POST", "/register", registration(batch_size=8, starting_step=9))
    assert both.ask("GET", "/info")[1]["batch_size"] == 4
    assert both.ask("GET", "/status")[1]["current_step"] == 0


def test_one_nan_costs_a_whole_batch(both: BothServers) -> None:
    both.ask("POST", "/register", registration(batch_size=8))
    both.ask("POST", "/scored_data", group(4, mark=1))
    both.ask("POST", "/scored_data", group(4, mark=2, scores=[math.nan, 0, 0, 0]))
    assert both.ask("GET", "/batch")[0] == 500
    assert both.ask("GET", "/batch")[1] == {"batch": None}
    assert both.ask("GET", "/status")[1]["current_step"] == 1


def test_a_large_group_blocks_the_others(both: BothServers) -> None:
    both.ask("POST", "/register", registration(batch_size=8))
    both.ask("POST", "/scored_data", group(16))
    for _ in range(10):
        both.ask("POST", "/scored_data", group(4))
    assert both.ask("GET", "/batch")[1] == {"batch": None}


def test_all_weights_zero_break_the_status(both: BothServers) -> None:
    both.ask("POST", "/register", registration())
    both.ask("GET", "/batch")
    both.ask("POST", "/register-env", environment(weight=0.0))
    assert both.ask("GET", "/status-env", {"env_id": 0})[0] == 500


def script(rng: random.Random, length: int) -> Iterator[Request]:
    """A random life of a server: one run after the other, each with its own batch size and environments."""
    environments = 0
    for at in range(length):
        if at % 50 == 0:
            environments = 0
            yield "GET", "/reset_data", None
            yield "POST", "/register", registration(batch_size=rng.choice([4, 8, 12]), starting_step=rng.randrange(3))
            yield "POST", "/register-env", environment()
            yield "GET", "/batch", None
        choice = rng.random()
        env_id = rng.choice([None, 77, *range(environments)])
        if choice < 0.08:
            share = rng.choice([None, None, None, 0.25, 0.6])
            weight = rng.choice([0.5, 1.0, 3.0])
            name = rng.choice("ab")
            size = rng.choice([1, 2, 4])
            yield (
                "POST",
                "/register-env",
                environment(desired_name=name, group_size=size, weight=weight, min_batch_allocation=share),
            )
            environments += 1
        elif choice < 0.55:
            yield "POST", "/scored_data", group(rng.choice([1, 2, 2, 4, 4, 4, 8]), mark=at, env_id=env_id)
        elif choice < 0.6:
            yield "POST", "/scored_data_list", [group(rng.choice([1, 4]), mark=at, env_id=env_id) for _ in range(3)]
        elif choice < 0.64:
            yield "POST", "/scored_data", group(2, mark=at, masks=[[1]], scores=[0.5], advantages=[[]])
        elif choice < 0.68:
            yield "POST", "/scored_data", rng.choice([{}, group(1, tokens="x"), group(1, messages=[[{"role": "u"}]])])
        elif choice < 0.8:
            yield "GET", "/batch", None
        elif choice < 0.9:
            yield "GET", "/status-env", {"env_id": rng.randrange(environments) if environments else 5}
        elif choice < 0.92 and environments > 1:
            yield "POST", "/disconnect-env", {"env_id": rng.randrange(environments)}
        else:
            yield "GET", rng.choice(["/status", "/info", "/wandb_info", "/latest_example"]), None


def _comparable(answer: httpx.Response) -> tuple[int, Any]:
    """Status and body, without what may differ: random numbers and the wording of errors."""
    if answer.status_code == 422:
        return 422, [problem["loc"][:2] for problem in answer.json()["detail"]][:1]
    if answer.status_code >= 400:
        return answer.status_code, None
    if not answer.headers["content-type"].startswith("application/json"):
        return answer.status_code, answer.text
    body = answer.json()
    if isinstance(body, dict):
        body.pop("uuid", None)
        body.pop("error", None)
    return answer.status_code, body


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/info", trust_env=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False
