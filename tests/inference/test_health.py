"""Health: what requests say first, a cheap probe only when one failed, and never an endless or silent wait."""

from __future__ import annotations

import asyncio
import time

import pytest

from atropos_tui.errors import InferenceError
from atropos_tui.inference import ServerManager, pool
from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import ServerHealth
from tests.inference.fake_inference_server import Dialect, FakeServer, hang, status
from tests.inference.managing import HELLO, Collecting, config_for, health_threads, managing, stopped, until


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr("atropos_tui.inference.health.PROBE_INTERVAL", 0.05)


async def test_a_server_that_answers_is_never_probed() -> None:
    async with FakeServer("openai") as fake, managing(fake) as servers:
        for _ in range(3):
            await servers.chat_completion(messages=HELLO)
        assert fake.probes == []
        assert health_threads() == []


async def test_nothing_known_is_not_unhealthy() -> None:
    async with FakeServer("openai") as fake, managing(fake) as servers:
        assert servers.unhealthy_detail == ""
        assert servers.servers[0].server_healthy
        assert servers.servers[0].healthy is None
        assert await servers.chat_completion(messages=HELLO)
        assert servers.servers[0].healthy is True


async def test_all_servers_down_is_a_bounded_wait_with_a_clear_error() -> None:
    async with managing(await stopped(), await stopped(), timeout=1) as servers:
        began = time.monotonic()
        with pytest.raises(InferenceError, match="no inference server answers") as caught:
            await servers.chat_completion(messages=HELLO)
        assert 1 <= time.monotonic() - began < 60
        assert caught.value.kind == "unhealthy"
        for server in servers.servers:
            assert server.url in str(caught.value)
            assert server.sem.in_use == 0
        assert "Connect call failed" in servers.unhealthy_detail or "refused" in servers.unhealthy_detail


async def test_requests_go_to_the_servers_that_are_up() -> None:
    down = [await stopped() for _ in range(pool.MAX_ATTEMPTS + 1)]
    async with FakeServer("openai") as up, managing(*down, up) as servers:
        answers = await asyncio.gather(*(servers.chat_completion(messages=HELLO) for _ in range(10)))
        assert len(answers) == len(up.requests) == 10
        assert [server.server_healthy for server in servers.servers] == [False] * len(down) + [True]
        assert servers.unhealthy_detail == ""


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("openai", "/v1/models"),
        ("vllm", "/health"),
        ("stock_vllm", "/health"),
        ("sglang", "/health"),
        ("trl", "/health/"),
    ],
)
async def test_a_server_is_asked_a_cheap_question_until_it_is_back(kind: Dialect, path: str) -> None:
    fake = await stopped(kind)
    async with managing(fake) as servers:
        asking = asyncio.create_task(servers.chat_completion(messages=HELLO))
        await until(lambda: servers.unhealthy_detail != "")
        fake.healthy = False
        await fake.start()
        try:
            await until(lambda: len(fake.probes) >= 2)
            assert set(fake.probes) == {path}
            assert "HTTP 503" in servers.unhealthy_detail
            assert fake.requests == []
            fake.healthy = True
            await asyncio.wait_for(asking, 60)
            probes = len(fake.probes)
            await until(lambda: health_threads() == [])
            assert len(fake.probes) == probes
        finally:
            await fake.stop()


async def test_an_engine_that_hangs_is_found_out_by_a_probe() -> None:
    async with FakeServer("vllm", healthy=False) as fake, managing(fake, timeout=1) as servers:
        fake.faults.append(hang)
        with pytest.raises(InferenceError, match="did not answer"):
            await servers.chat_completion(messages=HELLO)
        await until(lambda: "HTTP 503" in servers.unhealthy_detail)


async def test_an_error_of_a_server_that_is_up_leaves_it_healthy() -> None:
    async with FakeServer("vllm") as fake, managing(fake) as servers:
        fake.faults.append(status(500))
        await servers.chat_completion(messages=HELLO)
        await until(lambda: len(fake.probes) == 1)
        assert servers.servers[0].server_healthy


async def test_without_health_check_a_server_is_never_held_back() -> None:
    fake = await stopped()
    async with managing(fake, health_check=False) as servers:
        with pytest.raises(InferenceError, match="cannot connect to") as caught:
            await servers.chat_completion(messages=HELLO)
        assert caught.value.kind == "connect"
        assert servers.unhealthy_detail == ""
        assert health_threads() == []


async def test_health_can_be_declared() -> None:
    async with FakeServer("openai") as fake, managing(fake) as servers:
        server = servers.servers[0]
        server.server_healthy = False
        assert not server.server_healthy
        assert server.url in servers.unhealthy_detail
        server.server_healthy = True
        assert servers.unhealthy_detail == ""


async def test_health_and_its_changes_are_published() -> None:
    fake = await stopped()
    sink = Collecting()
    async with managing(fake, num_max_requests_at_once=10, num_requests_for_eval=4) as servers:
        servers.attach(EventStream(sink))
        asking = asyncio.create_task(servers.chat_completion(messages=HELLO))
        await until(lambda: servers.unhealthy_detail != "")
        await fake.start()
        try:
            await asyncio.wait_for(asking, 60)
        finally:
            await fake.stop()
        await servers.update_weight(0.5)
    events = sink.of(ServerHealth)
    states = [event.healthy for event in events]
    assert states[0] is None
    assert [state for i, state in enumerate(states[1:]) if states[i] != state] == [False, True]
    assert fake.root in events[1].detail
    assert (events[0].limit, events[0].eval_limit, events[0].url) == (10, 4, fake.url)
    assert (events[-1].limit, events[-1].eval_limit) == (5, 2)


async def test_probes_end_with_the_manager() -> None:
    fake = await stopped()
    servers = ServerManager([config_for(fake)])
    asking = asyncio.create_task(servers.chat_completion(messages=HELLO))
    await until(lambda: health_threads() != [])
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await servers.close()
    assert health_threads() == []


async def test_the_way_back_is_found_even_when_the_callers_loop_has_ended() -> None:
    fake = await stopped()
    async with managing(fake) as servers:

        def ask_from_another_loop() -> None:
            with pytest.raises(TimeoutError):
                asyncio.run(asyncio.wait_for(servers.chat_completion(messages=HELLO), 0.2))

        await asyncio.to_thread(ask_from_another_loop)
        asking = asyncio.create_task(servers.chat_completion(messages=HELLO))
        await fake.start()
        try:
            assert await asyncio.wait_for(asking, 60)
        finally:
            await fake.stop()
