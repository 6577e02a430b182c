"""Micro-batching: requests that come together are sampled together, and fail together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from atropos_tui.pocket import engine as engine_module
from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.engine import Engine
from atropos_tui.pocket.routes import create_app
from atropos_tui.pocket.sampling import SamplingRequest, sample
from tests.pocket.small_policy import disturbed_policy

REQUEST = SamplingRequest((3, 4, 2), n=2, max_tokens=3)


@pytest.fixture
def engine() -> Engine:
    return Engine(disturbed_policy(vocabulary=29, reach=32), Characters(), seed=0)


async def test_requests_that_come_together_share_a_batch(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    def counting(policy: Any, requests: Sequence[SamplingRequest], *others: Any) -> Any:
        batches.append(len(requests))
        return sample(policy, requests, *others)

    monkeypatch.setattr(engine_module, "sample", counting)
    async with engine.running():
        answers = await asyncio.gather(*(engine.sample(REQUEST) for _ in range(20)))
    assert batches == [20]
    assert all(len(samples) == 2 and version == 0 for samples, version in answers)
    assert engine.sequences_sampled == 40


async def test_a_batch_is_no_larger_than_it_may_be(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "LARGEST_BATCH", 6)
    batches: list[int] = []

    def counting(policy: Any, requests: Sequence[SamplingRequest], *others: Any) -> Any:
        batches.append(sum(request.n for request in requests))
        return sample(policy, requests, *others)

    monkeypatch.setattr(engine_module, "sample", counting)
    async with engine.running():
        await asyncio.gather(*(engine.sample(REQUEST) for _ in range(9)))
    assert batches == [6, 6, 6]


async def test_a_batch_that_fails_is_told_as_an_error_and_the_next_one_works(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("out of luck")

    transport = httpx.ASGITransport(create_app(engine), raise_app_exceptions=False)
    async with engine.running(), httpx.AsyncClient(transport=transport, base_url="http://policy") as http:
        with monkeypatch.context() as patch:
            patch.setattr(engine_module, "sample", failing)
            failed = await http.post("/generate", json={"prompt": "abc>"})
        answered = await http.post("/generate", json={"prompt": "abc>"})
    assert failed.status_code == 500
    assert failed.json()["error"]["message"] == "RuntimeError: out of luck"
    assert answered.status_code == 200
