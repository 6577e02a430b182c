"""Groups that are sent again under the same key are accepted once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.trajectory_api.bodies import group, mark_of
from tests.trajectory_api.conftest import Api


def key(name: str) -> dict[str, str]:
    return {"idempotency-key": name}


async def test_a_repeated_key_brings_nothing_new_and_gets_the_answer_again(api: Api) -> None:
    await api.start_run()
    env_id = await api.register_env()
    for sent, answer in (
        (group(4, env_id=env_id), {"status": "received"}),
        (group(3, env_id=env_id), {"status": "buffered", "buffer_size": 3}),
    ):
        name = f"run:{answer['status']}"
        for _ in range(3):
            assert (await api.post("/scored_data", json=sent, headers=key(name))).json() == answer
    assert (await api.get("/status")).json()["queue_size"] == 1
    assert "groups_repeated_total 4\n" in (await api.get("/metrics")).text


async def test_without_a_key_equal_groups_are_all_taken(api: Api) -> None:
    for _ in range(2):
        await api.post("/scored_data", json=group(4))
    assert (await api.get("/status")).json()["queue_size"] == 2


async def test_the_key_decides_even_when_the_body_has_changed(api: Api) -> None:
    """An environment that registered again between two attempts sends its new number."""
    await api.post("/scored_data", json=group(4, mark=1), headers=key("run:1"))
    await api.post("/scored_data", json=group(4, mark=2), headers=key("run:1"))
    assert mark_of((await api.get("/latest_example")).json()) == 1


async def test_a_repeated_list_brings_nothing_new(api: Api) -> None:
    sent = [group(4, mark=mark) for mark in range(3)]
    first = (await api.post("/scored_data_list", json=sent, headers=key("run:list"))).json()
    assert (await api.post("/scored_data_list", json=sent, headers=key("run:list"))).json() == first
    assert (await api.get("/status")).json()["queue_size"] == 3


async def test_a_refused_group_does_not_use_up_its_key(api: Api) -> None:
    assert (await api.post("/scored_data", json=group(2, scores=[1]), headers=key("run:1"))).status_code == 422
    assert (await api.post("/scored_data", json=group(2), headers=key("run:1"))).json() == {"status": "received"}
    assert (await api.get("/status")).json()["queue_size"] == 1


async def test_a_repeat_that_overtakes_the_journal_waits_for_the_first(
    make_api: Callable[..., Api], tmp_path: Path
) -> None:
    api = make_api(journal=tmp_path / "api.journal")
    repeats = [api.post("/scored_data", json=group(4), headers=key("run:1")) for _ in range(8)]
    answers = [answer.json() for answer in await asyncio.gather(*repeats)]
    assert answers == [{"status": "received"}] * 8
    assert (await api.get("/status")).json()["queue_size"] == 1


async def test_a_reset_forgets_the_keys(api: Api) -> None:
    await api.post("/scored_data", json=group(4), headers=key("run:1"))
    await api.get("/reset_data")
    await api.post("/scored_data", json=group(4), headers=key("run:1"))
    assert (await api.get("/status")).json()["queue_size"] == 1


async def test_an_endless_key_is_refused(api: Api) -> None:
    response = await api.post("/scored_data", json=group(4), headers=key("x" * 256))
    assert response.status_code == 400
    assert "at most 255" in response.json()["detail"]
