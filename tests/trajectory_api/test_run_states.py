"""Registration as a state machine: trainers and environments that come, come again, fall silent, or come too early."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.wire import EnvNotRegistered, EnvRegistered, RegisterEnv, Registration
from tests.trajectory_api.bodies import environment, group, mark_of, registration
from tests.trajectory_api.conftest import Api


class HandClock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def run(clock: HandClock) -> TrainingRun:
    """A run that has begun, with batches of 8 sequences."""
    run = TrainingRun(clock=clock)
    run.register(Registration(**registration()))
    run.take_batch()
    return run


def join(run: TrainingRun, **changes: Any) -> EnvRegistered:
    answer = run.register_environment(RegisterEnv(**environment(**changes)))
    assert isinstance(answer, EnvRegistered), answer
    return answer


async def test_environments_wait_until_the_trainer_asks_for_its_first_batch(api: Api) -> None:
    wait = {"status": "wait for trainer to start"}
    assert (await api.post("/register-env", json=environment())).json() == wait
    await api.get("/batch")
    assert (await api.post("/register-env", json=environment())).json() == wait
    await api.post("/register", json=registration())
    assert (await api.post("/register-env", json=environment())).json() == wait
    await api.get("/batch")
    assert (await api.post("/register-env", json=environment())).json()["status"] == "success"
    assert len((await api.get("/inspect/environments")).json()["environments"]) == 1


async def test_groups_that_come_before_the_trainer_are_kept_for_it(api: Api) -> None:
    for mark in (1, 2):
        answer = (await api.post("/scored_data", json=group(4, mark=mark, env_id=7))).json()
        assert answer == {"status": "received"}
    codes = {warning["code"] for warning in (await api.get("/inspect")).json()["warnings"]}
    assert "data_before_trainer" in codes
    await api.post("/register", json=registration())
    assert (await api.get("/info")).json()["batch_size"] == 8
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [1, 2]


@pytest.mark.parametrize("missing", sorted(registration()))
async def test_a_registration_that_lacks_a_field_is_refused_by_its_name(api: Api, missing: str) -> None:
    body = registration()
    del body[missing]
    response = await api.post("/register", json=body)
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", missing]
    assert missing in response.json()["detail"][0]["msg"]


async def test_a_trainer_that_registers_again_with_other_settings_gets_them(api: Api) -> None:
    await api.start_run(starting_step=0)
    env_id = await api.register_env()
    for mark in range(3):
        await api.post("/scored_data", json=group(4, mark=mark, env_id=env_id))
    await api.get("/batch")
    await api.post("/register", json=registration(batch_size=4, starting_step=40, wandb_project="resumed"))
    assert (await api.get("/status")).json() == {"current_step": 40, "queue_size": 1}
    assert (await api.get("/wandb_info")).json()["project"] == "resumed"
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [2]
    assert (await api.get("/status-env", params={"env_id": env_id})).json()["current_step"] == 41


async def test_one_more_process_of_the_same_trainer_changes_nothing(api: Api) -> None:
    await api.start_run()
    for _ in range(2):
        await api.post("/scored_data", json=group(4))
    await api.get("/batch")
    await api.post("/register", json=registration())
    assert (await api.get("/status")).json()["current_step"] == 1


async def test_a_trainer_that_registers_after_its_last_step_begins_anew(api: Api) -> None:
    """Its environments would take the steps of the run before for their own, and end at once."""
    await api.start_run(num_steps=2, batch_size=4)
    env_id = await api.register_env()
    for mark in range(3):
        await api.post("/scored_data", json=group(4, mark=mark, env_id=env_id))
    await api.get("/batch")
    await api.post("/register", json=registration(num_steps=2, batch_size=4))
    assert (await api.get("/status")).json() == {"current_step": 1, "queue_size": 2}
    await api.get("/batch")
    assert (await api.get("/status")).json() == {"current_step": 2, "queue_size": 1}
    await api.post("/register", json=registration(num_steps=2, batch_size=4))
    assert (await api.get("/status")).json() == {"current_step": 0, "queue_size": 1}
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [2]


async def test_a_trainer_that_wants_no_number_of_steps_is_joined_at_any(api: Api) -> None:
    await api.start_run(num_steps=-1, batch_size=4)
    await api.post("/scored_data", json=group(4))
    await api.get("/batch")
    await api.post("/register", json=registration(num_steps=-1, batch_size=4))
    assert (await api.get("/status")).json()["current_step"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": math.inf}, {"weight": math.nan}, {"max_token_length": 10**400}, {"min_batch_allocation": math.inf},
        {"min_batch_allocation": 1e308}, {"group_size": 10**30},
    ],
    ids=str,
)  # fmt: skip
async def test_an_environment_with_numbers_that_cannot_be_reckoned_with_is_refused(
    api: Api, changes: dict[str, Any]
) -> None:
    """Once taken in, they broke `/batch`, `/status-env` and `/inspect` for everybody until the next reset."""
    await api.start_run()
    env_id = await api.register_env()
    refused = await api.post("/register-env", content=json.dumps(environment(desired_name="odd", **changes)))
    assert refused.status_code == 422
    assert refused.json()["detail"][0]["loc"] == ["body", *changes]
    for path in ("/batch", f"/status-env?env_id={env_id}", "/inspect", "/metrics"):
        assert (await api.get(path)).status_code == 200


@pytest.mark.parametrize("field", ["starting_step", "num_steps", "max_token_len", "save_checkpoint_interval"])
async def test_a_trainer_with_numbers_that_no_journal_can_hold_is_refused(api: Api, field: str) -> None:
    assert (await api.post("/register", json=registration(**{field: 10**30}))).status_code == 422
    assert (await api.get("/info")).json()["batch_size"] == -1


@pytest.mark.parametrize("batch_size", [10**9, 10**30])
async def test_a_batch_size_beyond_all_measure_is_refused(api: Api, batch_size: int) -> None:
    """Its sums would be numbers of as many bits: the server stood still for minutes."""
    assert (await api.post("/register", json=registration(batch_size=batch_size))).status_code == 422


@pytest.mark.parametrize("batch_size", [0, -1, "x", None])
async def test_a_batch_size_that_is_none_is_refused(api: Api, batch_size: object) -> None:
    response = await api.post("/register", json=registration(batch_size=batch_size))
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "batch_size"]


async def test_a_batch_size_that_the_environments_can_never_fill_is_refused_with_the_reason(api: Api) -> None:
    await api.start_run(batch_size=8)
    await api.register_env(group_size=4)
    response = await api.post("/register", json=registration(batch_size=10))
    assert response.status_code == 409
    assert "batch_size 10 can never be met" in response.json()["detail"]
    assert "groups here have 4;" in response.json()["detail"]
    assert (await api.get("/info")).json()["batch_size"] == 8


@pytest.mark.parametrize(
    ("group_size", "says"), [(16, "larger than the trainer's batch_size 8"), (3, "cannot make up")]
)
async def test_an_environment_that_can_never_be_part_of_a_batch_is_told_why(
    api: Api, group_size: int, says: str
) -> None:
    """With 200 and a status in words: upstream's environments log it each second, and join when it no longer holds."""
    await api.start_run(batch_size=8)
    response = await api.post("/register-env", json=environment(group_size=group_size))
    assert response.status_code == 200
    assert f"group_size {group_size}" in response.json()["status"]
    assert says in response.json()["status"]
    assert (await api.get("/inspect/environments")).json() == {"environments": []}


def test_two_environments_that_only_together_fill_a_batch_are_both_taken(run: TrainingRun) -> None:
    run.register(Registration(**registration(batch_size=10)))
    assert isinstance(run.register_environment(RegisterEnv(**environment(group_size=4))), EnvNotRegistered)
    join(run, desired_name="b", group_size=6)
    join(run, desired_name="a", group_size=4)


async def test_a_missing_name_gets_a_default(api: Api) -> None:
    await api.start_run()
    body = environment(desired_name=None)
    assert (await api.post("/register-env", json=body)).json()["wandb_name"] == "environment_0"
    del body["desired_name"]
    assert (await api.post("/register-env", json=body)).json()["wandb_name"] == "environment_1"


async def test_reset_forgets_all_but_the_latest_group(api: Api) -> None:
    await api.start_run(starting_step=9)
    env_id = await api.register_env()
    await api.post("/scored_data", json=group(4, mark=5, env_id=env_id))
    await api.post("/scored_data", json=group(1, mark=6, env_id=env_id))
    response = await api.get("/reset_data")
    assert (response.status_code, response.text) == (200, "Reset successful")
    assert (await api.get("/status")).json() == {"current_step": 0, "queue_size": 0}
    assert (await api.get("/info")).json()["batch_size"] == -1
    assert (await api.get("/batch")).json()["status"] == "error"
    assert (await api.get("/status-env", params={"env_id": env_id})).status_code == 404
    assert mark_of((await api.get("/latest_example")).json()) == 5
    assert (await api.get("/inspect/buffers")).json() == {"buffers": []}


async def test_a_straggler_after_a_reset_does_not_keep_the_next_trainer_out(api: Api) -> None:
    await api.start_run()
    await api.get("/reset_data")
    assert (await api.post("/scored_data", json=group(4, env_id=0))).status_code == 200
    await api.post("/register", json=registration(batch_size=4))
    assert (await api.get("/info")).json()["batch_size"] == 4
    assert (await api.get("/batch")).json()["batch"] is not None


async def test_a_sender_of_keys_is_asked_to_register_again_and_a_stock_one_is_taken(api: Api) -> None:
    await api.start_run()
    keyed = await api.post("/scored_data", json=group(4, env_id=3), headers={"idempotency-key": "run:1"})
    assert keyed.status_code == 404
    assert "register again" in keyed.json()["detail"]
    assert (await api.post("/scored_data", json=group(4, env_id=3))).json() == {"status": "received"}
    assert (await api.get("/status")).json()["queue_size"] == 1
    codes = {warning["code"] for warning in (await api.get("/inspect")).json()["warnings"]}
    assert "unknown_environments" in codes


def test_an_environment_that_comes_back_after_it_was_lost_gets_its_number_again(
    run: TrainingRun, clock: HandClock
) -> None:
    first = join(run, desired_name="gsm8k")
    clock.now += 61
    again = join(run, desired_name="gsm8k", weight=2.0)
    assert (again.env_id, again.wandb_name) == (first.env_id, first.wandb_name)
    assert len(run.environments) == 1


def test_one_that_names_its_run_gets_its_number_again_at_once(run: TrainingRun) -> None:
    first = join(run, run_id="r1")
    twin = join(run, run_id="r2")
    assert twin.env_id != first.env_id
    assert join(run, run_id="r1").env_id == first.env_id


def test_a_restarted_environment_does_not_dilute_the_weights(run: TrainingRun, clock: HandClock) -> None:
    for _ in range(4):
        env_id = join(run).env_id
        clock.now += 61
        run.environments.heard_of(run.known(env_id))
    assert run.environment_status(env_id).env_weight == 1.0


def test_an_environment_counts_again_with_its_next_request(run: TrainingRun, clock: HandClock) -> None:
    silent, other = join(run, desired_name="a").env_id, join(run, desired_name="b").env_id
    clock.now += 61
    assert run.environment_status(other).env_weight == 1.0
    assert run.environment_status(silent).env_weight == 0.5
    assert run.environment_status(other).env_weight == 0.5


def test_a_disconnected_environment_no_longer_counts(run: TrainingRun) -> None:
    gone, there = join(run, desired_name="a", min_batch_allocation=0.5).env_id, join(run, desired_name="b").env_id
    run.disconnect(gone)
    status = run.environment_status(there)
    assert (status.env_weight, status.unallocated_fraction) == (1.0, 1.0)


@pytest.mark.parametrize(
    "dialect",
    [
        {"run_id": "r", "batch_size": 8, "max_token_len": 9, "checkpoint_dir": "", "starting_step": 0, "num_steps": 5},
        {"wandb_group": None, "wandb_project": None, "batch_size": 8, "max_token_len": 9, "checkpoint_dir": None,
         "starting_step": 0, "num_steps": 5},
        {"run_group": "g", "run_project": "p", "batch_size": 8, "max_token_len": 9},
    ],
)  # fmt: skip
async def test_other_dialects_register_only_where_that_is_allowed(make_api: Any, dialect: dict[str, Any]) -> None:
    assert (await make_api().post("/register", json=dialect)).status_code == 422
    lenient = make_api(lenient=True)
    assert "uuid" in (await lenient.post("/register", json=dialect)).json()
    assert (await lenient.get("/info")).json() == {"batch_size": 8, "max_token_len": 9}
    assert (await lenient.post("/register", json={"batch_size": 0, "max_token_len": 9})).status_code == 422
