"""What each endpoint answers on the wire, as upstream's server does."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.trajectory_api.bodies import GROUP_KEYS, environment, group, mark_of, registration
from tests.trajectory_api.conftest import Api


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/", {"message": "AtroposLib API"}),
        ("/health", {"status": "ok"}),
        ("/info", {"batch_size": -1, "max_token_len": -1}),
        ("/wandb_info", {"group": None, "project": None}),
        ("/status", {"current_step": 0, "queue_size": 0}),
        ("/batch", {"status": "error", "message": "Trainer not registered. Call /register first.", "batch": []}),
    ],
)
async def test_before_a_trainer_every_path_answers_what_upstream_answers(api: Api, path: str, answer: Any) -> None:
    response = await api.get(path)
    assert response.status_code == 200
    assert response.json() == answer


async def test_before_the_first_group_the_latest_example_is_an_object_of_empty_lists(api: Api) -> None:
    example = (await api.get("/latest_example")).json()
    assert all(value == [] for value in example.values())
    assert {"tokens", "masks", "scores"} <= set(example)


async def test_after_registration_the_trainers_settings_are_told(api: Api) -> None:
    registered = await api.post("/register", json=registration(starting_step=3))
    assert isinstance(registered.json()["uuid"], int)
    assert (await api.get("/info")).json() == {"batch_size": 8, "max_token_len": 512}
    assert (await api.get("/wandb_info")).json() == {"group": "group", "project": "project"}
    assert (await api.get("/status")).json() == {"current_step": 3, "queue_size": 0}
    assert (await api.get("/batch")).json() == {"batch": None}


async def test_an_environment_gets_its_number_its_name_and_the_trainers_settings(api: Api) -> None:
    await api.start_run(starting_step=5)
    first = await api.post("/register-env", json=environment(desired_name="gsm8k"))
    second = await api.post("/register-env", json=environment(desired_name="gsm8k"))
    assert first.json() == {
        "status": "success", "env_id": 0, "wandb_name": "gsm8k_0", "checkpoint_dir": "/checkpoints", "starting_step": 5,
        "checkpoint_interval": 7, "num_steps": 1000,
    }  # fmt: skip
    assert (second.json()["env_id"], second.json()["wandb_name"]) == (1, "gsm8k_1")


async def test_a_group_comes_out_with_all_fourteen_keys_nulls_included(api: Api) -> None:
    await api.start_run()
    for mark in (1, 2):
        assert (await api.post("/scored_data", json=group(mark=mark))).json() == {"status": "received"}
    batch = (await api.get("/batch")).json()["batch"]
    assert [mark_of(received) for received in batch] == [1, 2]
    for received in batch:
        assert set(received) == GROUP_KEYS
        assert received["overrides"] is None


async def test_no_field_of_a_group_is_lost_or_changed_on_its_way(api: Api) -> None:
    sent = {
        "tokens": [[1, 2], [3, 4]], "masks": [[-100, 2], [-100, 4]], "scores": [0.25, -1.0],
        "advantages": [[0.1, 0.2], [0.3, 0.4]], "ref_logprobs": [[-1.5, -2.5], [-3.5, -4.5]],
        "messages": [[{"role": "user", "content": [{"type": "text", "text": "ü\u2028😀"}], "x": [True]}],
                     [{"role": "tool", "content": "1", "tool_call_id": "a"}]],
        "generation_params": {"temperature": 0.7}, "inference_logprobs": [[1.0, -0.1], [1.0, -0.2]],
        "overrides": [{"set_advantage_to_zero": True}, {}], "group_overrides": {"sft": True}, "images": {"any": [None]},
        "distill_token_ids": [[[1], [2]], [[3], [4]]], "distill_logprobs": [[[-0.1], [-0.2]], [[-0.3], [-0.4]]],
        "env_id": None,
    }  # fmt: skip
    await api.start_run(batch_size=2)
    await api.post("/scored_data", json=sent)
    (received,) = (await api.get("/batch")).json()["batch"]
    assert received == sent
    assert (await api.get("/latest_example")).json() == sent


async def test_unknown_keys_are_dropped_and_what_upstream_converts_is_converted(api: Api) -> None:
    await api.start_run(batch_size=1)
    sent = {
        "tokens": [["1", 2.0]],
        "masks": [[True, 2]],
        "scores": [True],
        "note": "x",
        "inference_logprobs": [[1, "-2"]],
    }
    assert (await api.post("/scored_data", json=sent)).status_code == 200
    (received,) = (await api.get("/batch")).json()["batch"]
    assert set(received) == GROUP_KEYS
    assert received["tokens"] == [[1, 2]]
    assert json.dumps(received["masks"]) == "[[1, 2]]"
    assert received["scores"] == [1.0]
    assert received["inference_logprobs"] == [[1.0, -2.0]]


async def test_empty_optional_lists_are_taken_as_they_are(api: Api) -> None:
    """Upstream's `collect_trajectories` sends empty lists for what a rollout has not got."""
    await api.start_run(batch_size=1)
    empty = {"advantages": [], "ref_logprobs": [], "messages": [], "overrides": [], "group_overrides": {}}
    assert (await api.post("/scored_data", json=group(1, **empty))).json() == {"status": "received"}
    (received,) = (await api.get("/batch")).json()["batch"]
    assert {key: received[key] for key in empty} == empty


async def test_a_list_of_groups_is_taken_in_order_and_counted(api: Api) -> None:
    await api.start_run()
    env_id = await api.register_env()
    sent = [group(4, mark=1, env_id=env_id), group(1, mark=2, env_id=env_id), group(4, mark=3)]
    answer = (await api.post("/scored_data_list", json=sent)).json()
    assert answer == {"status": "received", "groups_processed": 3, "buffered": 1, "last_buffer_size": 1}
    assert [mark_of(received) for received in (await api.get("/batch")).json()["batch"]] == [1, 3]


async def test_one_bad_group_refuses_its_whole_list(api: Api) -> None:
    await api.start_run()
    response = await api.post("/scored_data_list", json=[group(4), group(4, masks=[[1]])])
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"][:3] == ["body", 1, "masks"]
    assert (await api.get("/status")).json()["queue_size"] == 0


async def test_gzip_bodies_are_inflated_and_large_answers_compressed_for_those_who_accept_it(api: Api) -> None:
    await api.start_run(batch_size=4)
    body = gzip.compress(json.dumps(group(4)).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    assert (await api.post("/scored_data", content=body, headers=headers)).json() == {"status": "received"}
    await api.post("/scored_data", content=body, headers=headers)
    compressed = await api.get("/batch", headers={"accept-encoding": "gzip"})
    assert compressed.headers["content-encoding"] == "gzip"
    plain = await api.get("/batch", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert compressed.json() == plain.json()
    small = await api.get("/info", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize("how", ["query", "body"])
async def test_status_env_takes_the_id_from_query_or_body(api: Api, how: str) -> None:
    await api.start_run()
    env_id = await api.register_env()
    if how == "query":
        response = await api.get("/status-env", params={"env_id": env_id})
    else:
        response = await api.request("GET", "/status-env", json={"env_id": env_id})
    assert response.json() == {
        "current_step": 0, "queue_size": 0, "unallocated_fraction": 1.0, "self_queue_size": 0, "max_group_size": 1,
        "env_weight": 1.0,
    }  # fmt: skip


async def test_status_env_counts_as_upstream_does(api: Api) -> None:
    """The example that was measured on upstream's server: queue sizes 8, 17, 4; own 3, 5, 1; weights .25, .75, .01."""
    await api.start_run(batch_size=8)
    await api.register_env(group_size=4, weight=1.0)
    await api.register_env(group_size=2, weight=3.0, min_batch_allocation=0.5)
    await api.register_env(group_size=8, weight=0.0)
    for env_id, size, count in ((0, 4, 3), (1, 2, 5), (2, 8, 1)):
        for _ in range(count):
            await api.post("/scored_data", json=group(size, env_id=env_id))
    found = [(await api.get("/status-env", params={"env_id": env_id})).json() for env_id in range(3)]
    assert [status["queue_size"] for status in found] == [8, 17, 4]
    assert [status["self_queue_size"] for status in found] == [3, 5, 1]
    assert [status["env_weight"] for status in found] == [0.25, 0.75, 0.01]
    assert {status["unallocated_fraction"] for status in found} == {0.5}
    assert {status["max_group_size"] for status in found} == {8}


async def test_weights_of_zero_and_below_give_the_least_weight_and_no_error(api: Api) -> None:
    await api.start_run()
    for weight in (0.0, -1.0):
        await api.register_env(weight=weight)
    for env_id in (0, 1):
        assert (await api.get("/status-env", params={"env_id": env_id})).json()["env_weight"] == 0.01


async def test_unknown_environments_get_404_with_the_remedy(api: Api) -> None:
    response = await api.get("/status-env", params={"env_id": 3})
    assert response.status_code == 404
    assert "register again" in response.json()["detail"]
    answer = (await api.post("/disconnect-env", json={"env_id": 3})).json()
    assert answer["status"] == "failure"
    assert "not registered" in answer["error"]


async def test_what_does_not_exist_is_said_in_fastapis_form(api: Api) -> None:
    missing = await api.get("/run_info")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Not Found"})
    wrong = await api.put("/scored_data", json={})
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})
    assert wrong.headers["allow"] == "POST"
