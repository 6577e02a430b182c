"""The trainers of the Atropos ecosystem as seen on the wire: the order of their calls, their polling, what they read.

Each is written from the contract, in our own words; none of their code is here.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from atropos_tui.monitor.supervisor import start_process
from tests.trajectory_api.bodies import environment, group, mark_of, registration

Batch = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("personas") / "api.log"
    with start_process([sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0"], log_path=log) as server:
        yield str(server.ready["url"])


@pytest.fixture
def http(shared_server: str) -> Iterator[httpx.Client]:
    """A fresh run on a server that all personas share, as trainers share one over a day."""
    with httpx.Client(base_url=shared_server, timeout=60, trust_env=False) as client:
        client.get("/reset_data")
        yield client


def send(http: httpx.Client, *groups: dict[str, Any]) -> None:
    for sent in groups:
        http.post("/scored_data", json=sent).raise_for_status()


def with_logprobs(mark: int, **changes: Any) -> dict[str, Any]:
    return group(4, mark=mark, inference_logprobs=[[1.0, -0.5, -0.25]] * 4, **changes)


def advantages(received: dict[str, Any]) -> list[float]:
    """Scores in deviations from the group's mean, zero where the environment says so."""
    scores = received["scores"]
    spread = max(statistics.pstdev(scores), 1e-8)
    normed = [(score - statistics.fmean(scores)) / spread for score in scores]
    for index, override in enumerate(received["overrides"] or ()):
        if override.get("set_advantage_to_zero"):
            normed[index] = 0.0
    return normed


def temperature(received: dict[str, Any]) -> float:
    for place in ((received["overrides"] or [{}])[0], received["generation_params"], received["group_overrides"]):
        if place and "temperature" in place:
            return float(place["temperature"])
    return 1.0


def test_the_example_trainer_waits_for_info_registers_and_drains(http: httpx.Client) -> None:
    assert http.get("/info", timeout=60).status_code == 200
    assert "uuid" in http.post("/register", json=registration(batch_size=8)).json()
    send(
        http,
        with_logprobs(1, overrides=[{"set_advantage_to_zero": True}, {"temperature": 0.5}, {}, {}]),
        with_logprobs(2, generation_params={"temperature": 0.7}),
        with_logprobs(3, group_overrides={"temperature": 0.9}),
        with_logprobs(4),
    )
    drained: list[Batch] = []
    while True:
        answer = http.get("/batch").json()
        assert answer.get("status") != "error"
        if answer["batch"] is None:
            break
        drained.append(answer["batch"])
    assert [[mark_of(received) for received in batch] for batch in drained] == [[1, 2], [3, 4]]
    received = [received for batch in drained for received in batch]
    assert advantages(received[0])[0] == 0.0
    assert sum(advantages(received[1])) == pytest.approx(0.0)
    assert [temperature(one) for one in received] == [1.0, 0.7, 0.9, 1.0]
    for one in received:
        assert [len(row) for row in one["inference_logprobs"]] == [len(row) for row in one["tokens"]]


def test_a_group_without_logprobs_has_the_key_that_trainers_index(http: httpx.Client) -> None:
    http.post("/register", json=registration(batch_size=4))
    send(http, group(4))
    (received,) = http.get("/batch").json()["batch"]
    assert received["overrides"] is None
    assert received["inference_logprobs"] is None
    assert received["advantages"] is received["ref_logprobs"] is received["messages"] is None


def test_the_axolotl_plugin_polls_before_it_registers(http: httpx.Client) -> None:
    """Its loader's thread starts first; what it reads from an error answer must look like an empty batch."""
    got: list[Batch] = []
    enough = threading.Event()

    def load() -> None:
        with httpx.Client(base_url=http.base_url, timeout=60, trust_env=False) as loader:
            while not enough.is_set():
                batch = loader.get("/batch").json()["batch"]
                if batch:
                    got.append(batch)
                    enough.set()
                time.sleep(0.01)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        assert http.get("/batch").json()["batch"] == []
        http.post("/register", json=registration(batch_size=4))
        send(http, group(4, mark=7))
        assert enough.wait(60)
    finally:
        enough.set()
        loader.join()
    (received,) = got[0]
    assert received["overrides"] is None
    assert received["tokens"][0] == [7, 2, 3]
    assert len(received["scores"]) == 4


def test_tinker_reads_its_uuid_and_masks_by_the_logprob_of_exactly_one(http: httpx.Client) -> None:
    answer = http.post("/register", json=registration(batch_size=4))
    answer.raise_for_status()
    assert answer.json()["uuid"] > 0
    send(http, with_logprobs(1, distill_token_ids=[[[5], [6], [7]]] * 4, distill_logprobs=[[[-1.0]] * 3] * 4))
    (received,) = http.get("/batch").json()["batch"]
    trained = [[logprob != 1.0 for logprob in row] for row in received["inference_logprobs"]]
    assert trained == [[mask != -100 for mask in row] for row in received["masks"]]
    assert '"inference_logprobs": [[1.0,' in str(received).replace("'", '"')
    assert received["distill_token_ids"][0][1] == [6]
    assert (received.get("overrides") or []) == []


def test_torchtitan_polls_without_a_timeout_and_takes_missing_logprobs_for_one(http: httpx.Client) -> None:
    http.post("/register", json=registration(batch_size=4), timeout=None)
    assert http.get("/batch", timeout=None).json()["batch"] is None
    send(http, group(4))
    (received,) = http.get("/batch", timeout=None).json()["batch"]
    logprobs = received.get("inference_logprobs") or [[1.0] * len(row) for row in received["tokens"]]
    assert len(logprobs) == len(received["masks"])
    assert [mask != -100 for mask in received["masks"][0]] == [False, True, True]


def test_torchtitans_experiment_goes_on_without_a_step_endpoint(http: httpx.Client) -> None:
    dialect = dict.fromkeys(registration()) | {
        "batch_size": 4, "max_token_len": 9, "starting_step": 0, "num_steps": 5,
    }  # fmt: skip
    del dialect["save_checkpoint_interval"]
    assert http.post("/register", json=dialect, timeout=30).status_code == 422
    assert http.post("/step", json={"step": 1}, timeout=30).status_code == 404
    assert http.get("/batch", timeout=30).json()["batch"] == []


def test_verl_polls_and_looks_only_at_the_batch(http: httpx.Client) -> None:
    http.post("/register", json=registration(batch_size=8, max_token_len=65))
    assert http.get("/batch").json()["batch"] is None
    send(http, group(4, mark=1, advantages=[[0.0, 1.0, -1.0]] * 4), group(4, mark=2))
    first, second = http.get("/batch").json()["batch"]
    response_starts = [next(at for at, mask in enumerate(row) if mask != -100) for row in first["masks"]]
    assert response_starts == [1] * 4
    assert first.get("advantages") == [[0.0, 1.0, -1.0]] * 4
    assert second.get("advantages") is None


def test_verls_errors_carry_a_body_that_says_what_is_wrong(http: httpx.Client) -> None:
    response = http.post("/register", json={"batch_size": 8})
    assert response.status_code == 422
    assert "wandb_group" in response.text[:200]


def test_nemo_gym_waits_for_status_and_passes_whole_groups_on(http: httpx.Client) -> None:
    assert http.get("/status").status_code == 200
    http.post("/register", json=registration(batch_size=32))
    sent = [group(4, mark=mark) for mark in range(8)]
    http.post("/scored_data_list", json=sent).raise_for_status()
    batch = http.get("/batch").json()["batch"]
    assert len(batch) == 8
    assert statistics.fmean(batch[0]["scores"]) == 0.75
    for received, was_sent in zip(batch, sent, strict=True):
        assert {key: received[key] for key in was_sent} == was_sent


def test_an_agent_loop_watches_its_environments_status_by_query(http: httpx.Client) -> None:
    http.post("/register", json=registration(batch_size=8))
    http.get("/batch")
    env_id = http.post("/register-env", json=environment()).json()["env_id"]
    send(http, group(4, env_id=env_id))
    status = http.get("/status-env", params={"env_id": env_id}).json()
    assert (status["queue_size"], status["self_queue_size"]) == (1, 1)


def test_dialects_that_upstream_refuses_are_refused_with_the_missing_field(http: httpx.Client) -> None:
    """Babylon names a run instead of W&B's group and project; Jeju has fields of its own."""
    for dialect in ({"run_id": "r"}, {"run_group": "g", "run_project": "p"}):
        body = registration() | dialect
        del body["wandb_group"], body["wandb_project"]
        response = http.post("/register", json=body)
        assert response.status_code == 422
        assert {problem["loc"][1] for problem in response.json()["detail"]} == {"wandb_group", "wandb_project"}


def test_a_trainer_that_was_restarted_goes_on_with_the_same_server(http: httpx.Client) -> None:
    """hermes-agent starts server, trainer and environment in turn, and starts the trainer again when it died."""
    http.post("/register", json=registration(batch_size=4))
    http.get("/batch")
    send(http, group(4, mark=1), group(4, mark=2))
    assert mark_of(http.get("/batch").json()["batch"][0]) == 1
    with httpx.Client(base_url=http.base_url, timeout=60, trust_env=False) as restarted:
        restarted.post("/register", json=registration(batch_size=4))
        assert mark_of(restarted.get("/batch").json()["batch"][0]) == 2
