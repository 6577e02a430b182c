"""Servers that an environment makes itself join the run whose code first calls them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from atropos_tui.inference import OpenAIServer, ServerManager
from atropos_tui.inference.run_servers import RunServers, current_servers
from atropos_tui.ledger import EventStream, current_group
from atropos_tui.ledger.events import CallFinished, CallStarted, ServerHealth
from tests.inference.fake_inference_server import FakeServer
from tests.inference.managing import HELLO, Collecting, config_for, health_threads, managing, stopped, until


class Run:
    """A run with a server of its own, and who watches it."""

    def __init__(self) -> None:
        self.seen = Collecting()
        self.stream = EventStream(self.seen)
        self.servers = RunServers(self.stream)

    @contextlib.contextmanager
    def code(self, group: int | None = 7) -> Iterator[None]:
        """The author's code, as the runtime calls it."""
        run, of = current_servers.set(self.servers), current_group.set(group)
        try:
            yield
        finally:
            current_servers.reset(run)
            current_group.reset(of)

    def health(self) -> list[tuple[int, str, bool | None, bool]]:
        return [(e.server, e.url, e.healthy, e.auxiliary) for e in self.seen.of(ServerHealth)]

    def finished(self) -> list[tuple[int, int | None, int, bool]]:
        return [(e.call_id, e.group_id, e.server, e.auxiliary) for e in self.seen.of(CallFinished)]


async def test_a_manager_that_nobody_watches_joins_after_the_runs_own() -> None:
    run = Run()
    async with FakeServer("openai") as policy, FakeServer("openai") as judging:
        async with managing(policy, policy) as own, managing(judging) as judge:
            own.attach(run.stream)
            await judge.chat_completion(messages=HELLO)
            assert {number for number, *_ in run.health()} == {0, 1}, "no code of the run has called it yet"
            with run.code():
                await own.chat_completion(messages=HELLO)
                await judge.chat_completion(messages=HELLO)
            await judge.chat_completion(messages=HELLO)
        assert run.health()[-1] == (2, judging.url, True, True)
    assert run.finished() == [(1, 7, 0, False), (2, 7, 2, True), (3, None, 2, True)]
    assert [(e.call_id, e.auxiliary) for e in run.seen.of(CallStarted)] == [(1, False), (2, True), (3, True)]


async def test_a_judge_that_refuses_is_a_server_of_the_run_that_is_down() -> None:
    run = Run()
    gone = await stopped()
    async with FakeServer("openai") as policy, managing(policy) as own:
        own.attach(run.stream)
        judge = ServerManager([config_for(gone)])
        with run.code():
            asking = asyncio.create_task(judge.chat_completion(messages=HELLO))
        await until(lambda: run.health()[-1][2] is False)
        assert run.health()[-1] == (1, gone.url, False, True)
        assert gone.root in run.seen.of(ServerHealth)[-1].detail
        assert own.unhealthy_detail == "", "its own server is none the worse for it"
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert health_threads() != []
        await run.servers.close()
        assert health_threads() == []


async def test_a_manager_that_was_down_before_it_joined_is_shown_so() -> None:
    run = Run()
    async with managing(await stopped()) as judge:
        judge.servers[0].server_healthy = False
        with run.code():
            asking = asyncio.create_task(judge.chat_completion(messages=HELLO))
        await until(lambda: run.health() != [])
        assert [(number, healthy) for number, _, healthy, _ in run.health()[:1]] == [(0, False)]
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_a_server_without_a_manager_joins_too() -> None:
    run = Run()
    async with FakeServer("openai") as fake:
        alone = OpenAIServer(config_for(fake))
        with run.code():
            await alone.chat_completion(messages=HELLO)
        await run.servers.close()
    assert run.health() == [(0, fake.url, None, True), (0, fake.url, True, True)]
    assert run.finished() == [(1, 7, 0, True)]


async def test_managers_made_anew_for_the_same_servers_have_the_same_numbers() -> None:
    run = Run()
    async with FakeServer("openai") as first, FakeServer("openai") as second:
        for fake in (first, first, second, first):
            async with managing(fake) as judge:
                with run.code():
                    await judge.chat_completion(messages=HELLO)
    assert [server for _, _, server, _ in run.finished()] == [0, 0, 1, 0]


async def test_code_in_threads_with_loops_of_their_own_joins_once() -> None:
    run = Run()
    async with FakeServer("openai") as fake, managing(fake) as judge:

        def ask() -> None:
            asyncio.run(judge.chat_completion(messages=HELLO))

        with run.code():
            await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))
    assert [(number, healthy) for number, _, healthy, _ in run.health()][:1] == [(0, None)]
    assert [(group, server) for _, group, server, _ in run.finished()] == [(7, 0)] * 4


async def test_the_end_of_a_request_is_told_only_to_those_who_heard_of_its_beginning() -> None:
    run = Run()
    async with FakeServer("openai") as fake, managing(fake) as judge:
        fake.delay = 30
        before = asyncio.create_task(judge.chat_completion(messages=HELLO))
        await until(lambda: fake.in_flight == 1)
        fake.delay = 0
        with run.code():
            await judge.chat_completion(messages=HELLO)
        before.cancel()
        await asyncio.gather(before, return_exceptions=True)
    assert len(run.seen.of(CallStarted)) == len(run.seen.of(CallFinished)) == 1


async def test_after_its_run_a_judge_may_join_another_but_no_longer_this_one() -> None:
    first, second = Run(), Run()
    async with FakeServer("openai") as fake, managing(fake) as judge:
        with first.code():
            await judge.chat_completion(messages=HELLO)
            await first.servers.close()
            await judge.chat_completion(messages=HELLO)
        with second.code(group=1):
            await judge.chat_completion(messages=HELLO)
    assert first.finished() == [(1, 7, 0, True)]
    assert second.finished() == [(1, 1, 0, True)]
    assert second.health() == [(0, fake.url, True, True)]


async def test_told_of_the_same_stream_again_a_manager_keeps_its_numbers() -> None:
    run = Run()
    async with FakeServer("openai") as fake, managing(fake) as own:
        own.attach(run.stream)
        own.attach(run.stream)
    assert run.health() == [(0, fake.url, None, False)] * 2
    assert run.stream.number_servers(1) == 1
