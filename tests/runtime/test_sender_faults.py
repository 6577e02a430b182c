"""Whatever the trajectory API does to a sender, each group arrives once or is refused for good."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atropos_tui.ledger import Outcome
from atropos_tui.ledger.events import GroupDelivered, GroupRefused, SendFailed
from atropos_tui.runtime.courier import PATIENCE, retry_delay
from atropos_tui.runtime.encoding import encode_group
from tests.runtime.scored_groups import unhurried
from tests.runtime.scripted_api import (
    Behaviour,
    Request,
    ScriptedApi,
    accept,
    buffer,
    comes_true,
    endless,
    garbage,
    hang,
    http,
    lose_reply,
    say,
    scripted_api,
    until,
)
from tests.runtime.sender_bench import SOON, bench, checked_group


@pytest.fixture(params=["on disk", "in memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "outbox.db" if request.param == "on disk" else None


class TestFailures:
    async def test_groups_wait_for_an_api_that_is_down(self, path: Path | None) -> None:
        api = ScriptedApi()
        api.start()
        api.stop()
        async with bench(api.url, path) as b:
            await b.submit(1, 2, 3)
            await until(lambda: len(b.seen.of(SendFailed)) >= 3, "three failed sends")
            failed = b.seen.of(SendFailed)[1]
            assert f"no connection to {api.url}/scored_data" in failed.error
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
            async with bench(api.url, env_id=None) as b:
                await b.submit(1, 2, 3, 4, 5)
                b.sender.set_registration(3)
                await until(lambda: len(b.seen.of(GroupDelivered)) == 4, "the other groups")
                assert b.outcomes() == {Outcome.DELIVERED: 4, Outcome.IN_OUTBOX: 1}
                api.then = accept
                await b.drained()
        assert api.group_ids == [1, 3, 4, 5, 2]
        tried = [int(request.key.removeprefix("run:")) for request in api.requests]
        assert tried[:9] == [1, 2, 2, 2, 2, 2, 3, 4, 5]

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
                assert kept.group.body.json == encode_group(checked_group(1).body).json
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

    async def test_an_answer_without_end_is_not_read_to_its_end(self) -> None:
        with scripted_api(endless) as api:
            async with bench(api.url) as b:
                await b.submit(1)
                await b.drained()
        (failed,) = b.seen.of(SendFailed)
        assert failed.error == "HTTP 200 with an answer that is no JSON object"

    async def test_an_api_that_hangs_is_given_up_and_tried_again(self) -> None:
        with scripted_api(hang) as api:
            async with bench(api.url, timeout=0.2) as b:
                await b.submit(1)
                await b.drained()
                api.hanging.set()
        assert {failed.error for failed in b.seen.of(SendFailed)} == {"no answer within 0.2 s"}

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


broken = say(500)

mishaps: st.SearchStrategy[list[Behaviour]] = st.lists(
    st.sampled_from(
        [accept, buffer, lose_reply, broken, say(429, "", Retry_After="0"), say(422, "no"), say(404, "?"), say(302),
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
    # A group at which the server broke, and that was tried often enough, lets another go first.
    tries = sum(behaviour not in (accept, buffer) for behaviour in script)
    if concurrency == 1 and (broken not in script or tries < PATIENCE):
        assert delivered == sorted(delivered)
        assert api.group_ids == sorted(api.group_ids)
