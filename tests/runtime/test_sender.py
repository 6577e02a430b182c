"""Groups go into the outbox and out of it in order, under the right id, while the ledger adds up."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.ledger import Outcome
from atropos_tui.ledger.events import (
    GroupDelivered,
    GroupEnqueued,
    GroupSkipped,
    GroupStarted,
    OutboxUnwritable,
    SendFailed,
)
from atropos_tui.ledger.outcomes import DeliveredAs, SkipReason
from tests.runtime.scripted_api import (
    Request,
    ScriptedApi,
    accept,
    buffer,
    comes_true,
    hang,
    knowing,
    say,
    scripted_api,
    until,
)
from tests.runtime.sender_bench import SOON, bench, checked_group


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
        assert 0 < delivered.latency < 60

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
            together.wait(60)
            return accept(api, request)

        with scripted_api(then=meet) as api:
            async with bench(api.url, concurrency=4) as b:
                await b.submit(*range(1, 9))
                await b.drained()
        assert sorted(api.group_ids) == list(range(1, 9))
        assert (len(api.requests), api.most_at_once) == (8, 4)


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
    async def test_a_cancelled_submit_either_wrote_the_group_or_raises(
        self, path: Path | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with scripted_api() as api:
            async with bench(api.url, path) as b:
                await b.submit(1)
                await b.drained()
                b.stream.publish(GroupStarted, group_id=2, item="", rollouts=2, step=0)
                submitted = []
                add, adding = b.outbox.add, threading.Event()

                def noted(*arguments: Any, **options: Any) -> Any:
                    adding.set()
                    return add(*arguments, **options)

                monkeypatch.setattr(b.outbox, "add", noted)

                async def work() -> None:
                    await b.sender.submit(checked_group(2), 2, 0)
                    submitted.append(2)
                    await asyncio.sleep(60)

                b.outbox._lock.acquire()
                worker = asyncio.create_task(work())
                try:
                    await until(adding.is_set, "the write")
                    assert not submitted
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
                await until(lambda: len(b.seen.of(OutboxUnwritable)) >= 2, "two failed writes")
                first, *_ = b.seen.of(OutboxUnwritable)
                assert (first.group_id, first.path, first.error) == (2, str(tmp_path / "outbox.db"), "the disk is full")
                assert first.remedy.startswith("free space on /")
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
                deadline = time.monotonic() + 60
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
                assert await b.sender.drain(60.0)

    async def test_closing_lets_the_request_under_way_come_to_its_end(self) -> None:
        go_on = threading.Event()

        def slowly(api: ScriptedApi, request: Request) -> bytes:
            go_on.wait(60)
            return accept(api, request)

        with scripted_api(then=slowly) as api:
            async with bench(api.url) as b:
                await b.submit(1, 2)
                await until(lambda: api.requests, "the request")
                closing = asyncio.create_task(b.sender.close(grace=60.0))
                await comes_true(closing.done, 0.05)
                go_on.set()
                await closing
                assert b.outcomes() == {Outcome.DELIVERED: 1, Outcome.IN_OUTBOX: 1}
        assert api.group_ids == [1]

    @pytest.mark.parametrize("how", ["close", "cancel"])
    async def test_an_api_that_hangs_does_not_hold_up_the_end(self, how: str, tmp_path: Path) -> None:
        with scripted_api(hang) as api:
            async with bench(api.url, tmp_path / "outbox.db", timeout=600.0) as b:
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
                assert time.monotonic() - began < 60
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
                    await asyncio.wait_for(asyncio.shield(b.running), 60)
                b.running = asyncio.create_task(asyncio.sleep(0))
