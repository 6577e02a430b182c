"""Known faults of the trajectory API that no other test shows."""

from __future__ import annotations

import time

import httpx

from atropos_tui.trajectory_api.app import Settings, create_app
from atropos_tui.trajectory_api.group import QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.stored_json import StoredJson
from atropos_tui.trajectory_api.wire import RegisterEnv, Registration
from tests.trajectory_api.bodies import environment, group, registration


async def test_a_message_needs_only_a_role_and_a_content() -> None:
    app = create_app(Settings())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        await client.post("/register", json=registration(batch_size=2))
        said = [[{"role": "user", "content": "x"}], [{"role": "user", "content": "y", "reward": 1.0}]]
        answer = await client.post("/scored_data", json=group(2, messages=said))
        assert (answer.status_code, answer.json()) == (200, {"status": "received"})
        (received,) = (await client.get("/batch")).json()["batch"]
        assert received["messages"] == said
    app.close()


def test_the_status_costs_the_same_however_long_the_queue_is() -> None:
    run = TrainingRun()
    run.register(Registration(**registration()))
    run.take_batch()
    env_id = run.register_environment(RegisterEnv(**environment())).model_dump()["env_id"]
    short = cheapest_status(filled(run, env_id, 10), env_id)
    long = cheapest_status(filled(run, env_id, 20_000), env_id)
    assert run.environment_status(env_id).queue_size == 20_010
    assert long < 5 * short


def filled(run: TrainingRun, env_id: int, groups: int) -> TrainingRun:
    for _ in range(groups):
        run.admit(
            QueuedGroup(
                number=run.next_number(), env_id=env_id, sequences=4, tokens=12, scores=ScoreSummary(0, 0, 0, 0),
                received_at=0.0, stored=StoredJson.plain(b"{}"),
            )
        )  # fmt: skip
    return run


def cheapest_status(run: TrainingRun, env_id: int) -> float:
    """Seconds of the quickest of many calls: what others do on the machine makes some slower, none quicker."""
    seconds = []
    for _ in range(200):
        began = time.perf_counter()
        run.environment_status(env_id)
        seconds.append(time.perf_counter() - began)
    return min(seconds)
