"""Looking without taking: what an operator sees of environments, queue, batches, and of why there is no batch."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from atropos_tui.trajectory_api.environments import Environment
from tests.trajectory_api.bodies import group, registration
from tests.trajectory_api.conftest import Api


async def busy(api: Api) -> None:
    """Two environments; one delivered batch, two groups queued, one buffered."""
    await api.start_run(batch_size=8)
    await api.register_env(desired_name="a", control_url="http://node1:7000", min_batch_allocation=0.25)
    await api.register_env(desired_name="b", weight=3.0)
    for env_id, size in ((0, 4), (1, 4), (0, 4), (1, 8), (1, 1)):
        await api.post("/scored_data", json=group(size, env_id=env_id))
    assert (await api.get("/batch")).json()["batch"] is not None


async def test_looking_takes_nothing_and_starts_nothing(api: Api) -> None:
    await api.post("/register", json=registration(batch_size=4))
    await api.post("/scored_data", json=group(4))
    paths = [route for route in (await api.get("/openapi.json")).json()["paths"] if route.startswith("/inspect")]
    assert len(paths) == 7
    for path in [*paths, "/metrics"]:
        assert (await api.get(path)).status_code == 200
    assert (await api.get("/status")).json() == {"current_step": 0, "queue_size": 1}
    assert (await api.get("/inspect")).json()["trainer"]["started"] is False
    assert (await api.get("/batch")).json()["batch"] is not None


async def test_environments_are_shown_with_what_they_sent_and_where_they_are_controlled(api: Api) -> None:
    await busy(api)
    first, second = (await api.get("/inspect/environments")).json()["environments"]
    assert (first["wandb_name"], first["control_url"], first["minimum"]) == ("a_0", "http://node1:7000", 2)
    assert (second["wandb_name"], second["control_url"], second["weight"]) == ("b_0", None, 0.75)
    assert (first["queued_groups"], first["delivered_groups"], first["accepted_groups"]) == (1, 1, 2)
    assert (second["queued_sequences"], second["buffered_sequences"], second["accepted_sequences"]) == (8, 1, 13)
    assert 0 <= first["silent_for"] < 30
    assert 0 <= second["last_group_ago"] < 30


async def test_the_queue_is_shown_by_environment_and_size(api: Api) -> None:
    await busy(api)
    queue = (await api.get("/inspect/queue")).json()
    assert (queue["groups"], queue["sequences"]) == (2, 12)
    assert {(line["env_id"], line["size"], line["groups"]) for line in queue["lines"]} == {(0, 4, 1), (1, 8, 1)}
    assert queue["oldest_age"] >= max(line["oldest_age"] for line in queue["lines"]) - 1
    (buffer,) = (await api.get("/inspect/buffers")).json()["buffers"]
    assert (buffer["env_id"], buffer["group_size"], buffer["waiting"]["sequences"]) == (1, 4, 1)


async def test_ages_are_not_negative_when_the_clock_was_set_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await busy(api)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    everything = (await api.get("/inspect")).json()
    assert everything["queue"]["oldest_age"] == 0
    assert [row["last_group_ago"] for row in everything["environments"]] == [0, 0]


async def test_what_an_inspection_costs_does_not_grow_with_the_square_of_the_environments(api: Api) -> None:
    await api.start_run(batch_size=64)
    rows = 300
    for number in range(rows):
        env_id = await api.register_env(desired_name=f"env{number}", weight=2.0)
        await api.post("/scored_data", json=group(4, env_id=env_id))
    looked_at = 0

    class Claim:
        def __get__(self, row: Environment, _: object) -> float:
            nonlocal looked_at
            looked_at += 1
            return 2.0 * row.max_token_length

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Environment, "claim", Claim())
        views = (await api.get("/inspect/environments")).json()["environments"]
    assert looked_at < 3 * rows
    assert [view["weight"] for view in views] == [pytest.approx(max(0.01, 1 / rows))] * rows
    assert all(view["queued_groups"] == 1 for view in views)


async def test_batches_are_counted_ready_and_delivered(api: Api) -> None:
    await busy(api)
    batches = (await api.get("/inspect/batches")).json()
    assert (batches["batch_size"], batches["ready"], batches["delivered"], batches["in_delivery"]) == (8, 0, 1, 0)
    for _ in range(3):
        await api.post("/scored_data", json=group(4, env_id=0))
    assert (await api.get("/inspect/batches")).json()["ready"] == 2


async def test_the_newest_groups_are_shown_with_where_they_are(api: Api) -> None:
    await busy(api)
    groups = (await api.get("/inspect/groups", params={"limit": 4})).json()["groups"]
    assert [view["number"] for view in groups] == [5, 4, 3, 2]
    assert [view["place"] for view in groups] == ["buffered", "queued", "queued", "delivered"]
    assert groups[3]["delivered_at_step"] == 1
    assert (groups[1]["score_mean"], groups[1]["score_low"], groups[1]["score_high"]) == (1.75, 0.0, 3.5)
    assert groups[1]["score_spread"] == pytest.approx(1.1456, abs=1e-3)
    assert groups[1]["tokens"] == 24
    for limit in (0, 257, "x"):
        assert (await api.get("/inspect/groups", params={"limit": limit})).status_code == 422


async def test_why_there_is_no_batch_is_said_at_each_stage(api: Api) -> None:
    async def why() -> tuple[str, str]:
        answer = (await api.get("/inspect/why")).json()
        return answer["code"], answer["text"]

    assert (await why())[0] == "no_trainer"
    await api.start_run(batch_size=8)
    assert await why() == ("queue_empty", "the queue is empty and no environment has registered")
    await api.register_env(group_size=4)
    assert await why() == ("queue_empty", "the queue is empty; a batch needs 8 sequences")
    await api.post("/scored_data", json=group(4, env_id=0))
    assert await why() == ("too_few_sequences", "4 of the batch's 8 sequences are queued")
    await api.post("/scored_data", json=group(4, env_id=0))
    assert (await why())[0] == "ready"


async def test_metrics_are_prometheus_text(api: Api) -> None:
    await busy(api)
    await api.post("/scored_data", json={})
    response = await api.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'^[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+$')
    lines = response.text.splitlines()
    assert all(line.startswith("# ") or sample.match(line) for line in lines)
    for wanted in (
        "trajectory_api_step 1", "trajectory_api_queue_groups 2", "trajectory_api_batches_delivered_total 1",
        'trajectory_api_requests_refused_total{status="422"} 1',
        'trajectory_api_env_queue_groups{env_id="1",name="b_0"} 1',
    ):  # fmt: skip
        assert wanted in lines


async def test_the_description_names_every_path_and_its_bodies(api: Api) -> None:
    description = (await api.get("/openapi.json")).json()
    assert description["openapi"].startswith("3.1")
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(description)))
    assert references <= set(description["components"]["schemas"])
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            answers = await api.request(method.upper(), path)
            assert answers.status_code != 404 or path == "/status-env"
            assert answers.status_code != 405
            assert operation["summary"]
            assert ("requestBody" in operation) == (method == "post" or path == "/status-env")
    scored: dict[str, Any] = description["paths"]["/scored_data"]["post"]
    assert scored["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/ScoredData")
    assert [parameter["name"] for parameter in scored["parameters"]] == ["Idempotency-Key"]
    assert set(description["components"]["schemas"]["ScoredData"]["required"]) == {"tokens", "masks", "scores"}
    assert set(scored["responses"]) == {"200", "400", "404", "413", "415", "422", "503"}


async def test_the_page_shows_the_description_and_loads_nothing(api: Api) -> None:
    response = await api.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    for text in ("/scored_data_list", "ScoredData", "/inspect/why"):
        assert text in response.text
    assert not re.search(r"""(src|href)=['"](https?:)?//""", response.text)
