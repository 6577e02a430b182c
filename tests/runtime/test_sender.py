"""Groups reach the trajectory API exactly once and in order, whatever it does, and the ledger adds up all the while."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atropos_tui.ledger import EventStream, Outcome
from atropos_tui.ledger.events import (
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupRefused,
    GroupSkipped,
    GroupStarted,
    SendFailed,
)
from atropos_tui.ledger.outcomes import DeliveredAs, SkipReason
from atropos_tui.runtime.checks import CheckedGroup, GroupChecks
from atropos_tui.runtime.courier import retry_delay
from atropos_tui.runtime.outbox import Outbox
from atropos_tui.runtime.sender import Sender
from tests.runtime.scored_groups import scored_group, unhurried
from tests.runtime.scripted_api import (
    Behaviour,
    Request,
    ScriptedApi,
    accept,
    buffer,
    comes_true,
    garbage,
    hang,
    http,
    knowing,
    lose_reply,
    say,
    scripted_api,
    until,
)

SOON = 0.02


class Watching:
    """A sink that keeps all events."""

    def __init__(self) -> None:
        self.events: list[EventBase] = []

    def publish(self, event: EventBase) -> None:
        self.events.append(event)

    def keep(self, content: object) -> None:
        del content

    def of(self, kind: type[EventBase], group_id: int | None = None) -> list[Any]:
        found = [event for event in list(self.events) if isinstance(event, kind)]
        return [event for event in found if group_id is None or event.group_id == group_id]


class Bench:
    """A sender with everything around it."""

    def __init__(self, api_url: str, path: Path | None, **options: Any) -> None:
        self.seen = Watching()
        self.stream = EventStream(self.seen)
        self.outbox = Outbox(path)
        options = {"delay_after": lambda failures: SOON, "timeout": 20.0, "key_prefix": "run"} | options
        self.sender = Sender(outbox=self.outbox, api_url=api_url, stream=self.stream, **options)
        self.running = asyncio.create_task(self.sender.run())

    async def submit(self, *group_ids: int, step: int = 0, length: int = 6) -> None:
        for group_id in group_ids:
            self.stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=2, step=step)
            await self.sender.submit(checked_group(group_id, length), group_id, step)

    async def drained(self) -> None:
        assert await self.sender.drain(20.0), f"{self.sender.depth} groups are left"

    def outcomes(self) -> dict[Outcome, int]:
        counts = self.stream.counts()
        assert counts.balanced, self.stream.violations
        return {outcome: count for outcome, count in counts.by_outcome.items() if count}

    async def close(self) -> None:
        await self.sender.close()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(self.running, 10)
        self.outbox.close()
        assert self.stream.counts().balanced, self.stream.violations


def checked_group(group_id: int, length: int = 6) -> CheckedGroup:
    group = scored_group([0.0, float(group_id)], length=length)
    result = GroupChecks(2).check(group, group_id=group_id, item=f"item {group_id}", max_token_len=-1)
    assert isinstance(result, CheckedGroup)
    return result


@contextlib.asynccontextmanager
async def bench(
    api_url: str, path: Path | None = None, *, env_id: int | None = 3, **options: Any
) -> AsyncIterator[Bench]:
    made = Bench(api_url, path, **options)
    if env_id is not None:
        made.sender.set_registration(env_id)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture(params=["on disk", "in memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "outbox.db" if request.param == "on disk" else None


class TestDelivery:
    async def test_a_group_arrives_as_the_environment_made_it(self, path: Path | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, path) as b:
                await b.submit(1)
                await b.drained()
        (request,) = api.requests
        assert request.path == "/scored_data"
        assert (request.headers["content-type"], request.key) == ("application/json", "run:1")
        assert "content-encoding" not in request.headers
        assert request.group == {**checked_group(1).body, "env_id": 3}
        (delivered,) = b.seen.of(GroupDelivered)
        assert (delivered.reason, delivered.attempts) == (DeliveredAs.RECEIVED, 1)
        assert 0 < delivered.latency < 20

    async def test_a_large_group_arrives_compressed(self) -> None:
        with scripted_api() as api:
            async with bench(api.url) as b:
                await b.submit(1, length=5000)
                await b.drained()
        (request,) = api.requests
        assert request.headers["content-encoding"] == "gzip"
        assert request.group["tokens"] == checked_group(1, 5000).body["tokens"]
        (enqueued,) = b.seen.of(GroupEnqueued)
        assert enqueued.wire_bytes < enqueued.raw_bytes
        assert abs(len(request.raw) - enqueued.wire_bytes) < 100

    async def test_groups_arrive_in_the_order_in_which_they_were_finished(self, path: Path | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, path) as b:
                order = [(7 * number) % 50 + 1 for number in range(50)]
                await b.submit(*order)
                await b.drained()
        assert api.group_ids == order
        assert b.outcomes() == {Outcome.DELIVERED: 50}

    async def test_one_connection_serves_all_requests(self) -> None:
        with scripted_api() as api:
            async with bench(api.url) as b:
                await b.submit(*range(1, 21))
                await b.drained()
        assert api.most_at_once == 1

    async def test_a_buffered_group_is_delivered_as_buffered(self) -> None:
        with scripted_api(buffer) as api:
            async with bench(api.url) as b:
                await b.submit(1, 2)
                await b.drained()
        assert [event.reason for event in b.seen.of(GroupDelivered)] == [DeliveredAs.BUFFERED, DeliveredAs.RECEIVED]

    async def test_a_higher_concurrency_sends_at_the_same_time_and_each_group_once(self) -> None:
        together = threading.Barrier(4)

        def meet(api: ScriptedApi, request: Request) -> bytes:
            together.wait(10)
            return accept(api, request)

        with scripted_api(then=meet) as api:
            async with bench(api.url, concurrency=4) as b:
                await b.submit(*range(1, 9))
                await b.drained()
        assert sorted(api.group_ids) == list(range(1, 9))
        assert (len(api.requests), api.most_at_once) == (8, 4)


class TestFailures:
    async def test_groups_wait_for_an_api_that_is_down(self, path: Path | None) -> None:
        api = ScriptedApi()
        api.start()
        api.stop()
        async with bench(api.url, path) as b:
            await b.submit(1, 2, 3)
            await until(lambda: len(b.seen.of(SendFailed)) >= 3, "three failed sends")
            failed = b.seen.of(SendFailed)[1]
            assert "onnect" in failed.error
            assert (failed.attempts, failed.retry_in) == (2, SOON)
            assert b.outcomes() == {Outcome.IN_OUTBOX: 3}
            api.start()
            await b.drained()
            api.stop()
        assert api.group_ids == [1, 2, 3]
        assert b.seen.of(GroupDelivered)[0].attempts > 3

    @pytest.mark.parametrize("status", [401, 408, 425, 429, 500, 502, 503, 504])
    async def test_a_passing_refusal_is_tried_again_and_shown_with_its_body(self, status: int) -> None:
        with scripted_api(say(status, "come back later"), say(status, "still not")) as api:
            async with bench(api.url) as b:
                await b.submit(1, 2)
                await b.drained()
        failed = b.seen.of(SendFailed)
        assert [(event.error, event.body, event.attempts) for event in failed] == [
            (f"HTTP {status}", "come back later", 1),
            (f"HTTP {status}", "still not", 2),
        ]
        assert [event.attempts for event in b.seen.of(GroupDelivered)] == [3, 1]
        assert api.group_ids == [1, 2]

    async def test_a_group_that_always_breaks_the_api_does_not_hold_up_the_others(self) -> None:
        def breaks_at_group_2(api: ScriptedApi, request: Request) -> bytes:
            return http(500, "Internal Server Error") if request.key == "run:2" else accept(api, request)

        with scripted_api(then=breaks_at_group_2) as api:
            async with bench(api.url) as b:
                await b.submit(1, 2, 3, 4, 5)
                await until(lambda: len(api.queue) == 4, "the other groups")
                assert b.outcomes() == {Outcome.DELIVERED: 4, Outcome.IN_OUTBOX: 1}
                api.then = accept
                await b.drained()
        assert api.group_ids == [1, 3, 4, 5, 2]

    async def test_an_api_that_is_broken_for_a_while_gets_the_groups_in_order(self) -> None:
        with scripted_api(*[say(500)] * 30) as api:
            async with bench(api.url, delay_after=lambda failures: 0.001) as b:
                await b.submit(*range(1, 9))
                await b.drained()
        assert api.group_ids == list(range(1, 9))

    @pytest.mark.parametrize("status", [400, 403, 409, 413, 415, 422])
    async def test_a_refusal_of_the_group_ends_it_and_no_other(self, status: int, path: Path | None) -> None:
        with scripted_api(say(status, '{"detail":"no scores"}')) as api:
            async with bench(api.url, path) as b:
                await b.submit(1, 2)
                await b.drained()
                (kept,) = b.outbox.refused()
                assert (kept.group.group_id, kept.answer_status, kept.answer) == (1, status, '{"detail":"no scores"}')
                assert kept.group.body.json == checked_body(1)
        (refused,) = b.seen.of(GroupRefused)
        assert (refused.group_id, refused.status, refused.body) == (1, status, '{"detail":"no scores"}')
        assert b.outcomes() == {Outcome.REFUSED: 1, Outcome.DELIVERED: 1}
        assert api.group_ids == [2]

    async def test_the_body_of_an_answer_is_bounded(self) -> None:
        with scripted_api(say(422, "x" * 1_000_000)) as api:
            async with bench(api.url) as b:
                await b.submit(1)
                await b.drained()
        assert 1000 < len(b.seen.of(GroupRefused)[0].body) < 10_000

    async def test_a_lost_reply_makes_no_duplicate(self, path: Path | None) -> None:
        with scripted_api(lose_reply, lose_reply) as api:
            async with bench(api.url, path) as b:
                await b.submit(1, 2)
                await b.drained()
        assert [request.key for request in api.requests] == ["run:1", "run:1", "run:1", "run:2"]
        assert len({request.raw for request in api.requests[:3]}) == 1
        assert api.group_ids == [1, 2]
        assert [event.attempts for event in b.seen.of(GroupDelivered)] == [3, 1]

    @pytest.mark.parametrize(
        "answer",
        [
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
            http(200, "<html>Sign in to the network</html>"),
            http(200, ""),
            http(200, "[]"),
            http(200, "null"),
            http(200, b"\xff\xfe\x00"),
            http(200, '{"status":"error","message":"not registered"}'),
            http(200, '{"status":"received"}', Content_Encoding="gzip"),
            http(204),
            http(302, "", Location="http://127.0.0.1:1/elsewhere"),
            http(200, " " * 3_000_000 + "{}"),
        ],
    )
    async def test_an_answer_that_says_nothing_delivers_nothing(self, answer: bytes) -> None:
        with scripted_api(garbage(answer)) as api:
            async with bench(api.url) as b:
                await b.submit(1)
                await b.drained()
        (failed,) = b.seen.of(SendFailed)
        assert failed.error
        assert b.seen.of(GroupDelivered)[0].attempts == 2

    async def test_an_api_that_hangs_is_given_up_and_tried_again(self) -> None:
        with scripted_api(hang) as api:
            async with bench(api.url, timeout=0.2) as b:
                await b.submit(1)
                await b.drained()
                api.hanging.set()
        (failed,) = b.seen.of(SendFailed)
        assert failed.error == "no answer within 0.2 s"

    async def test_the_wait_that_the_api_asks_for_is_kept(self) -> None:
        with scripted_api(say(429, "", Retry_After="7"), say(503, "", Retry_After="soon")) as api:
            async with bench(api.url) as b:
                await b.submit(1)
                await until(lambda: b.seen.of(SendFailed), "the first failure")
                b.sender.wake()
                await b.drained()
        assert [event.retry_in for event in b.seen.of(SendFailed)] == [7.0, SOON]
        assert len(api.requests) == 3

    async def test_nothing_is_sent_before_its_time_unless_woken(self) -> None:
        with scripted_api(say(500)) as api:
            async with bench(api.url, delay_after=lambda failures: 600.0) as b:
                await b.submit(1)
                await until(lambda: b.seen.of(SendFailed), "the failure")
                await b.submit(2)
                assert not await comes_true(lambda: len(api.requests) > 1, 0.2)
                b.sender.wake()
                await b.drained()
        assert api.group_ids == [1, 2]

    def test_waits_grow_to_a_bound_and_differ(self) -> None:
        assert 0.05 <= retry_delay(1) <= 0.2
        assert all(5.0 <= retry_delay(failures) <= 10.0 for failures in (10, 100, 10_000))
        assert len({retry_delay(3) for _ in range(20)}) > 1


class TestRegistration:
    async def test_nothing_is_sent_before_the_environment_is_registered(self) -> None:
        with scripted_api() as api:
            async with bench(api.url, env_id=None) as b:
                await b.submit(1)
                assert not await b.sender.drain(0.2)
                assert api.requests == []
                b.sender.set_registration(5)
                await b.drained()
        assert api.queue["run:1"]["env_id"] == 5

    async def test_nothing_is_sent_while_the_registration_is_gone(self) -> None:
        with scripted_api() as api:
            async with bench(api.url) as b:
                b.sender.set_registration(None)
                await b.submit(1)
                assert not await b.sender.drain(0.2)
                b.sender.set_registration(0)
                await b.drained()
        assert api.queue["run:1"]["env_id"] == 0

    async def test_an_api_that_forgot_the_environment_gets_it_registered_again(self, path: Path | None) -> None:
        loops = []

        async def register_again() -> None:
            loops.append(asyncio.get_running_loop())
            b.sender.set_registration(8)

        with scripted_api(then=knowing(8)) as api:
            async with bench(api.url, path, on_unknown_env=register_again) as b:
                await b.submit(1, 2, 3)
                await b.drained()
        assert loops == [asyncio.get_running_loop()]
        assert api.group_ids == [1, 2, 3]
        assert {group["env_id"] for group in api.queue.values()} == {8}
        (failed,) = b.seen.of(SendFailed)
        assert "does not know env_id 3" in failed.error
        assert (failed.body, failed.retry_in) == ('{"detail": "unknown env 3"}', 0.0)

    async def test_an_id_that_stays_unknown_is_never_a_refusal(self) -> None:
        calls = []

        async def register_again() -> None:
            calls.append(1)
            b.sender.set_registration(len(calls) + 3)

        with scripted_api(then=knowing(6)) as api:
            async with bench(api.url, on_unknown_env=register_again) as b:
                await b.submit(1)
                await b.drained()
        assert len(calls) == 3
        assert [event.retry_in for event in b.seen.of(SendFailed)] == [0.0, SOON, SOON]
        assert b.outcomes() == {Outcome.DELIVERED: 1}

    async def test_a_registration_that_fails_is_told_and_tried_again(self) -> None:
        calls = []

        async def register_again() -> None:
            calls.append(1)
            if len(calls) == 1:
                raise ConnectionRefusedError("nobody there")
            b.sender.set_registration(6)

        with scripted_api(then=knowing(6)) as api:
            async with bench(api.url, on_unknown_env=register_again) as b:
                await b.submit(1)
                await b.drained()
        first, second = b.seen.of(SendFailed)
        assert "registering again failed: ConnectionRefusedError: nobody there" in first.error
        assert (first.retry_in, second.attempts) == (SOON, 2)

    async def test_without_anybody_to_register_the_group_waits(self) -> None:
        with scripted_api(then=knowing(6)) as api:
            async with bench(api.url) as b:
                await b.submit(1)
                await until(lambda: len(b.seen.of(SendFailed)) > 1, "two failures")
                assert b.outcomes() == {Outcome.IN_OUTBOX: 1}
                b.sender.set_registration(6)
                await b.drained()

    async def test_a_restarted_api_gets_the_same_groups_under_the_new_id(self, path: Path | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, path) as b:
                await b.submit(1, 2)
                await b.drained()
                api.stop()
                await b.submit(3, 4)
                await until(lambda: b.seen.of(SendFailed), "a failed send")
                b.sender.set_registration(None)
                api.start()
                b.sender.set_registration(9)
                await b.drained()
        assert api.group_ids == [1, 2, 3, 4]
        assert [group["env_id"] for group in api.queue.values()] == [3, 3, 9, 9]


class TestAge:
    async def test_a_group_that_is_too_old_for_the_trainer_is_skipped_not_sent(self, path: Path | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, path, env_id=None, max_age_steps=3) as b:
                await b.submit(1, step=6)
                await b.submit(2, step=7)
                b.sender.set_trainer_step(10)
                b.sender.set_registration(3)
                await b.drained()
        assert api.group_ids == [2]
        (skipped,) = b.seen.of(GroupSkipped)
        assert (skipped.group_id, skipped.reason) == (1, SkipReason.STALE)
        assert skipped.detail == "started at step 6, the trainer is at 10; 3 steps are allowed"
        assert b.outcomes() == {Outcome.SKIPPED: 1, Outcome.DELIVERED: 1}

    @pytest.mark.parametrize("limit", [None, 0, -1])
    async def test_without_a_limit_no_group_is_too_old(self, limit: int | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, max_age_steps=limit) as b:
                b.sender.set_trainer_step(1000)
                await b.submit(1)
                await b.drained()
        assert api.group_ids == [1]

    async def test_a_trainer_that_starts_over_makes_no_group_old(self) -> None:
        with scripted_api() as api:
            async with bench(api.url, max_age_steps=3) as b:
                b.sender.set_trainer_step(0)
                await b.submit(1, step=500)
                await b.drained()
        assert api.group_ids == [1]


class TestOneProcessAfterAnother:
    async def test_what_an_earlier_process_left_goes_first_under_its_old_key(self, tmp_path: Path) -> None:
        path = tmp_path / "outbox.db"
        with scripted_api() as api:
            async with bench(api.url, path, env_id=None, key_prefix="first") as b:
                await b.submit(4, 2, step=5)
            async with bench(api.url, path, env_id=None, key_prefix="second") as b:
                await until(lambda: b.sender.depth == 2 and len(b.seen.of(GroupEnqueued)) == 2, "what was left")
                assert b.outcomes() == {Outcome.IN_OUTBOX: 2}
                await b.submit(b.outbox.highest_group_id() + 1)
                b.sender.set_registration(1)
                await b.drained()
                assert b.outcomes() == {Outcome.DELIVERED: 3}
        assert list(api.queue) == ["first:4", "first:2", "second:5"]
        started = b.seen.of(GroupStarted)[0]
        assert (started.group_id, started.item, started.rollouts, started.step) == (4, "item 4", 2, 5)
        assert len(b.seen.of(GroupStarted)) == 3

    async def test_a_group_submitted_before_the_delivery_began_is_counted_once(self, tmp_path: Path) -> None:
        with scripted_api() as api:
            async with bench(api.url, tmp_path / "outbox.db") as b:
                b.stream.publish(GroupStarted, group_id=1, item="", rollouts=2, step=0)
                await b.sender.submit(checked_group(1), 1, 0)
                await b.drained()
                assert b.outcomes() == {Outcome.DELIVERED: 1}


class TestWriting:
    async def test_a_cancelled_submit_either_wrote_the_group_or_raises(self, path: Path | None) -> None:
        with scripted_api() as api:
            async with bench(api.url, path) as b:
                await b.submit(1)
                await b.drained()
                b.stream.publish(GroupStarted, group_id=2, item="", rollouts=2, step=0)
                submitted = []

                async def work() -> None:
                    await b.sender.submit(checked_group(2), 2, 0)
                    submitted.append(2)
                    await asyncio.sleep(60)

                b.outbox._lock.acquire()
                worker = asyncio.create_task(work())
                try:
                    assert not await comes_true(lambda: submitted, 0.1)
                    worker.cancel()
                    assert not await comes_true(worker.done, 0.05)
                    worker.cancel()
                finally:
                    b.outbox._lock.release()
                with pytest.raises(asyncio.CancelledError):
                    await worker
                await b.drained()
        assert submitted == [2]
        assert api.group_ids == [1, 2]

    async def test_a_full_disk_is_waited_for_and_told(self, tmp_path: Path) -> None:
        with scripted_api() as api:
            async with bench(api.url, tmp_path / "outbox.db") as b:
                await b.submit(1)
                await b.drained()
                (pages,) = b.outbox._database.execute("PRAGMA page_count").fetchone()
                b.outbox._database.execute(f"PRAGMA max_page_count = {pages}")
                waiting = asyncio.create_task(b.submit(2, length=200_000))
                await until(lambda: len(b.seen.of(SendFailed)) >= 2, "two failed writes")
                assert "database or disk is full; free disk space" in b.seen.of(SendFailed)[0].error
                assert not waiting.done()
                assert b.outcomes() == {Outcome.DELIVERED: 1, Outcome.IN_FLIGHT: 1}
                b.outbox._database.execute("PRAGMA max_page_count = 1000000")
                await waiting
                await b.drained()
        assert api.group_ids == [1, 2]


class TestLife:
    async def test_groups_are_delivered_while_the_authors_code_holds_the_loop(self) -> None:
        with scripted_api() as api:
            async with bench(api.url, env_id=None) as b:
                await b.submit(*range(1, 21))
                b.sender.set_registration(3)
                deadline = time.monotonic() + 20
                while len(api.queue) < 20 and time.monotonic() < deadline:
                    sum(range(10_000))  # computes, and never lets the loop go on
                assert len(api.queue) == 20

    async def test_draining_tells_when_it_takes_too_long(self) -> None:
        with scripted_api(then=say(500)) as api:
            async with bench(api.url) as b:
                assert await b.sender.drain(0.1)
                await b.submit(1)
                assert not await b.sender.drain(0.1)
                api.then = accept
                assert await b.sender.drain(20.0)

    async def test_closing_lets_the_request_under_way_come_to_its_end(self) -> None:
        go_on = threading.Event()

        def slowly(api: ScriptedApi, request: Request) -> bytes:
            go_on.wait(20)
            return accept(api, request)

        with scripted_api(then=slowly) as api:
            async with bench(api.url) as b:
                await b.submit(1, 2)
                await until(lambda: api.requests, "the request")
                closing = asyncio.create_task(b.sender.close(grace=20.0))
                await comes_true(closing.done, 0.05)
                go_on.set()
                await closing
                assert b.outcomes() == {Outcome.DELIVERED: 1, Outcome.IN_OUTBOX: 1}
        assert api.group_ids == [1]

    @pytest.mark.parametrize("how", ["close", "cancel"])
    async def test_an_api_that_hangs_does_not_hold_up_the_end(self, how: str, tmp_path: Path) -> None:
        with scripted_api(hang) as api:
            async with bench(api.url, tmp_path / "outbox.db") as b:
                await b.submit(1)
                await until(lambda: api.requests, "the request")
                began = time.monotonic()
                if how == "close":
                    await b.sender.close(grace=0.05)
                    await b.running
                else:
                    b.running.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await b.running
                assert time.monotonic() - began < 5
                assert b.outcomes() == {Outcome.IN_OUTBOX: 1}
                await until(
                    lambda: "sender" not in {thread.name for thread in threading.enumerate()}, "its thread's end"
                )
            api.hanging.set()
            async with bench(api.url, tmp_path / "outbox.db") as after:
                await until(lambda: len(api.queue) == 1, "the group")
                await after.drained()

    async def test_whatever_breaks_the_delivery_reaches_who_runs_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with scripted_api() as api:
            async with bench(api.url) as b:
                monkeypatch.setattr(b.outbox, "get", lambda group_id: 1 / 0)
                await b.submit(1)
                with pytest.raises(ZeroDivisionError):
                    await asyncio.wait_for(asyncio.shield(b.running), 10)
                b.running = asyncio.create_task(asyncio.sleep(0))


mishaps: st.SearchStrategy[list[Behaviour]] = st.lists(
    st.sampled_from(
        [accept, buffer, lose_reply, say(500), say(429, "", Retry_After="0"), say(422, "no"), say(404, "?"), say(302),
         garbage(b""), garbage(http(200, "<html>")), garbage(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")]
    ),
    max_size=12,
)  # fmt: skip


@settings(unhurried, max_examples=40)
@given(script=mishaps, concurrency=st.sampled_from([1, 1, 3]))
async def test_after_any_mishaps_every_group_has_arrived_once_or_was_refused(
    script: list[Behaviour], concurrency: int
) -> None:
    async def register_again() -> None:
        b.sender.set_registration(4)

    with scripted_api(*script) as api:
        async with bench(
            api.url, concurrency=concurrency, on_unknown_env=register_again, delay_after=lambda failures: 0.001
        ) as b:
            await b.submit(1, 2, 3, 4, 5)
            await b.drained()
            outcomes = b.outcomes()
    assert outcomes.get(Outcome.DELIVERED, 0) + outcomes.get(Outcome.REFUSED, 0) == 5
    delivered = [event.group_id for event in b.seen.of(GroupDelivered)]
    assert set(delivered) <= set(api.group_ids)
    if concurrency == 1:
        assert delivered == sorted(delivered)
        assert api.group_ids == sorted(api.group_ids)


def checked_body(group_id: int) -> bytes:
    from atropos_tui.runtime.encoding import encode_group

    return encode_group(checked_group(group_id).body).json
