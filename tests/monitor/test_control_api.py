"""The control API over a real unix socket, with the client that the screen uses."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger import EventStream, GroupContent, Rollout
from atropos_tui.ledger.events import (
    BacklogChanged,
    CallFinished,
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupScored,
    GroupStarted,
    LogLine,
    RunConfigured,
    RunStarted,
    Setting,
)
from atropos_tui.ledger.outcomes import DeliveredAs, FailReason, Outcome
from atropos_tui.monitor.asker import ASKER_HEADER, ASKER_LENGTH, asker, read_asker, write_asker
from atropos_tui.monitor.client import RefusedError, RunClient, UnreachableError
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.monitor_thread import MonitorThread
from atropos_tui.monitor.run_view import RunView
from atropos_tui.monitor.snapshot import SECTIONS, ConfigRow, RunSnapshot
from atropos_tui.monitor.unix_socket import bind_unix

LIMIT = 60.0


class RecordedCommands:
    def __init__(self) -> None:
        self.given: list[str] = []
        self.paused_by: list[str] = []
        self.ended = False

    def pause(self, by: str) -> None:
        if self.ended:
            raise AtroposError("the run has ended", "start it again")
        self.given.append("pause")
        self.paused_by.append(by)

    def pause_now(self, by: str) -> None:
        self.given.append("pause now")
        self.paused_by.append(by)

    def resume(self) -> None:
        self.given.append("resume")

    def step_group(self) -> None:
        self.given.append("step")

    async def cancel_group(self, group_id: int) -> bool:
        if group_id == 99:
            raise AtroposError("group 99 is not in flight")
        self.given.append(f"cancel {group_id}")
        return True

    async def requeue_group(self, group_id: int) -> bool:
        self.given.append(f"requeue {group_id}")
        return False

    async def evaluate(self) -> bool:
        self.given.append("evaluate")
        return True

    def stop(self) -> None:
        self.given.append("stop")


def pieces(ids: Sequence[int]) -> list[str]:
    return [f"<{token}>" for token in ids]


class WatchedRun:
    """A monitor thread on a socket, and a stream to publish to."""

    def __init__(self, socket_path: Path, *, read_only: bool = False) -> None:
        self.socket_path = socket_path
        self.commands = RecordedCommands()
        self.view = RunView(MemoryGroupStore())
        self.stream = EventStream(self.view.collector)
        self.monitor = MonitorThread(self.view, self.commands, socket_path, decode=pieces, read_only=read_only)
        self.monitor.start()
        self.stream.publish(
            RunStarted, run_id="run-1", environment="Env", file="env.py", pid=1, group_size=2, total_steps=10,
            max_token_length=64, tokenizer_name="pocket",
        )  # fmt: skip

    def delivered_group(self, group_id: int) -> None:
        self.stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=2, step=0)
        self.stream.publish(GroupScored, group_id=group_id, scores=(0.0, 1.0), completion_tokens=(2, 2))
        self.stream.keep(GroupContent(group_id, "item", (Rollout(0.0, tokens=[1, 2]), Rollout(1.0, tokens=[3]))))
        self.stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=10, wire_bytes=5)
        self.stream.publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.01, attempts=1)

    def failed_group(self, group_id: int) -> None:
        self.stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=2, step=0)
        self.stream.publish(
            GroupFailed, group_id=group_id, reason=FailReason.ENV_ERROR, error="it broke", traceback="Traceback …"
        )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[WatchedRun]:
    run = WatchedRun(tmp_path / "control.sock")
    yield run
    run.monitor.close()


@pytest.fixture
async def client(run: WatchedRun) -> AsyncIterator[RunClient]:
    async with RunClient(run.socket_path) as client:
        yield client


@pytest.fixture
async def raw(run: WatchedRun) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(uds=str(run.socket_path))
    async with httpx.AsyncClient(transport=transport, base_url="http://worker", timeout=LIMIT) as http:
        yield http


async def test_a_snapshot_is_whole_and_newest(run: WatchedRun, client: RunClient) -> None:
    run.delivered_group(1)
    snapshot = await client.snapshot()
    assert snapshot.run.run_id == "run-1"
    assert snapshot.ledger.by_outcome[Outcome.DELIVERED] == 1
    assert snapshot.scores.rollouts == 2
    assert set(snapshot.versions) == set(SECTIONS)


async def test_health_says_whose_worker_answers(client: RunClient) -> None:
    await client.snapshot()
    assert await client.health() == {"ok": True, "run_id": "run-1", "pid": 1, "state": "starting"}


async def test_a_client_that_says_what_it_knows_gets_only_what_changed(run: WatchedRun, raw: httpx.AsyncClient) -> None:
    first = (await raw.get("/snapshot")).json()
    assert set(first["sections"]) == set(SECTIONS)
    known = ",".join(f"{name}:{version}" for name, version in first["versions"].items())
    nothing = (await raw.get("/snapshot", params={"known": known})).json()
    assert nothing["sections"] == {}
    run.stream.publish(BacklogChanged, size=4)
    change = (await raw.get("/snapshot", params={"known": known})).json()
    assert set(change["sections"]) == {"queue"}
    assert change["versions"]["queue"] == first["versions"]["queue"] + 1


async def test_the_stream_sends_what_changed_and_is_silent_otherwise(
    run: WatchedRun, raw: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atropos_tui.monitor.control_api.KEEP_ALIVE_SECONDS", 600.0)
    async with raw.stream("GET", "/stream", params={"hz": 20}) as response, aclosing(response.aiter_lines()) as lines:
        first = json.loads(await asyncio.wait_for(anext(lines), LIMIT))
        assert set(first["sections"]) == set(SECTIONS)
        unprompted = asyncio.create_task(anext(lines))
        done, _ = await asyncio.wait({unprompted}, timeout=0.5)
        assert not done
        run.stream.publish(LogLine, level="INFO", logger="env", text="hello")
        change = json.loads(await asyncio.wait_for(unprompted, LIMIT))
        assert set(change["sections"]) == {"logs"}
        assert change["seq"] == first["seq"] + 1


async def test_a_silent_stream_keeps_alive(
    run: WatchedRun, raw: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atropos_tui.monitor.control_api.KEEP_ALIVE_SECONDS", 0.2)
    async with raw.stream("GET", "/stream", params={"hz": 20}) as response, aclosing(response.aiter_lines()) as lines:
        await asyncio.wait_for(anext(lines), LIMIT)
        assert await asyncio.wait_for(anext(lines), LIMIT) == "{}"


async def test_the_client_merges_the_stream_to_whole_snapshots(run: WatchedRun, client: RunClient) -> None:
    async with aclosing(client.stream(hz=20)) as snapshots:
        before = await asyncio.wait_for(anext(snapshots), LIMIT)
        run.delivered_group(1)
        after = await _until(snapshots, lambda snapshot: snapshot.sends.delivered == 1)
    assert after.logs is before.logs
    assert after.scores.groups == 1


async def test_text_with_any_kind_of_line_end_arrives_whole(run: WatchedRun, client: RunClient) -> None:
    text = "a\u2028b\x85c\x0bd\x1ce"
    async with aclosing(client.stream(20)) as snapshots:
        run.stream.publish(LogLine, level="INFO", logger="env", text="x", traceback=text)
        snapshot = await _until(snapshots, lambda snapshot: bool(snapshot.logs.rows))
    assert snapshot.logs.rows[0].traceback == text


async def test_two_streams_see_the_same(run: WatchedRun, client: RunClient) -> None:
    async with aclosing(client.stream(20)) as one, aclosing(client.stream(30)) as two:
        run.delivered_group(1)
        first = await _until(one, lambda snapshot: snapshot.sends.delivered == 1)
        second = await _until(two, lambda snapshot: snapshot.sends.delivered == 1)
    assert first.ledger == second.ledger


async def test_groups_are_paged_filtered_and_opened(run: WatchedRun, client: RunClient) -> None:
    for group_id in range(1, 8):
        run.delivered_group(group_id)
    run.failed_group(8)
    page = await client.groups(limit=3)
    assert ([row.group_id for row in page.rows], page.total) == ([8, 7, 6], 8)
    page = await client.groups(older_than=page.older_than, limit=50)
    assert [row.group_id for row in page.rows] == [5, 4, 3, 2, 1]
    page = await client.groups(outcome=Outcome.FAILED, reason="env_error")
    assert [row.group_id for row in page.rows] == [8]

    detail = await client.group(7)
    assert [rollout.pieces for rollout in detail.rollouts] == [("<1>", "<2>"), ("<3>",)]
    assert detail.row.scores == (0.0, 1.0)
    failed = await client.group(8)
    assert (failed.error, failed.traceback) == ("it broke", "Traceback …")


async def test_groups_are_asked_for_in_the_filter_language_and_in_an_order(run: WatchedRun, client: RunClient) -> None:
    for group_id in (1, 2):
        run.delivered_group(group_id)
    run.failed_group(3)
    page = await client.groups(limit=1, query=GroupQuery("group<=3", "outcome"))
    assert ([row.group_id for row in page.rows], page.total) == ([2], 3)
    page = await client.groups(older_than=page.older_than, query=GroupQuery("group<=3", "outcome"))
    assert [row.group_id for row in page.rows] == [1, 3]
    page = await client.groups(query=GroupQuery('"it broke"', but=(1,)))
    assert [row.group_id for row in page.rows] == [3]
    assert (await client.groups(query=GroupQuery(only=()))).total == 0
    with pytest.raises(RefusedError, match="no field 'scroe'; the fields are score"):
        await client.groups(query=GroupQuery("scroe<1"))


async def test_a_group_tells_the_requests_that_were_made_for_it(run: WatchedRun, client: RunClient) -> None:
    run.stream.publish(GroupStarted, group_id=1, item="item", rollouts=2, step=0)
    run.stream.publish(
        CallFinished, call_id=1, group_id=1, server=2, split="train", n=2, latency=0.5, prompt_tokens=3,
        completion_tokens=9, finish_reasons=("stop", "length"), weight_version=4,
    )  # fmt: skip
    run.stream.publish(GroupFailed, group_id=1, reason=FailReason.ENV_ERROR, error="it broke")
    detail = await client.group(1)
    (call,) = detail.calls
    assert (call.server, call.latency, call.completion_tokens, call.weight_version) == (2, 0.5, 9, 4)
    assert detail.row.finishes == ("length", "stop")
    assert (await client.groups(query=GroupQuery("finish:length"))).total == 1


async def test_a_group_that_is_not_there_is_refused_with_404(client: RunClient) -> None:
    with pytest.raises(RefusedError, match="group 99 has not ended") as refused:
        await client.group(99)
    assert refused.value.status == 404


async def test_commands_reach_the_run(run: WatchedRun, client: RunClient) -> None:
    await client.pause()
    await client.pause_now()
    await client.step_group()
    await client.resume()
    assert await client.cancel_group(7)
    assert not await client.requeue_group(8)
    assert await client.evaluate_now()
    await client.stop()
    given = ["pause", "pause now", "step", "resume", "cancel 7", "requeue 8", "evaluate", "stop"]
    assert run.commands.given == given


async def test_who_pauses_a_run_is_told_to_it(run: WatchedRun, raw: httpx.AsyncClient) -> None:
    async with RunClient(run.socket_path, via="screen") as screen, RunClient(run.socket_path) as script:
        await screen.pause()
        await script.pause_now()
    me = asker()
    assert "@" in me
    assert run.commands.paused_by == [f"{me} (screen)", me]
    await raw.post("/pause")
    assert run.commands.paused_by[-1] == ""


async def test_a_made_up_asker_is_bounded_and_cannot_write_on_a_terminal(
    run: WatchedRun, raw: httpx.AsyncClient
) -> None:
    for told in ("%1b%5b2J%07mal\tlory%0aeve", "%E2%80%AEeve", "x" * 10_000, "%ff%fe", "Zo\xc3\xab"):
        assert (await raw.post("/pause", headers={ASKER_HEADER: told.encode("latin-1")})).status_code == 200
    cleaned = run.commands.paused_by
    assert cleaned[0] == "[2J mal lory eve"
    assert all(len(by) <= ASKER_LENGTH and by.isprintable() for by in cleaned)
    assert "eve" in cleaned[1]
    assert read_asker(write_asker("Zoë Ärmel@köln (screen)")) == "Zoë Ärmel@köln (screen)"


async def test_a_command_the_run_cannot_follow_says_why(run: WatchedRun, client: RunClient) -> None:
    run.commands.ended = True
    with pytest.raises(RefusedError, match="the run has ended; start it again"):
        await client.pause()
    with pytest.raises(RefusedError, match="group 99 is not in flight") as refused:
        await client.cancel_group(99)
    assert refused.value.status == 409


async def test_the_configuration_tells_where_each_value_is_from_and_what_the_trainer_set(
    run: WatchedRun, client: RunClient
) -> None:
    assert await client.config() == ()
    run.stream.publish(
        RunStarted, run_id="run-1", environment="Env", file="env.py", pid=1, group_size=2, total_steps=10,
        max_token_length=64, tokenizer_name="pocket",
        settings=(
            Setting(name="env.group_size", value="2", source="command line"),
            Setting(name="env.batch_size", value="-1", source="class default"),
            Setting(name="openai.api_key", value="***", source="run.yaml"),
        ),
    )  # fmt: skip
    run.stream.publish(
        RunConfigured, api_url="http://api", env_id=0, starting_step=0, total_steps=10, batch_size=32, max_token_len=64
    )
    assert await client.config() == (
        ConfigRow("env.group_size", "2", "command line"),
        ConfigRow("env.batch_size", "32", "the trainer"),
        ConfigRow("openai.api_key", "***", "run.yaml"),
    )


async def test_looking_is_not_a_command(raw: httpx.AsyncClient, run: WatchedRun) -> None:
    assert (await raw.get("/pause")).status_code == 405
    assert run.commands.given == []


async def test_a_read_only_run_refuses_every_command_and_can_be_watched(tmp_path: Path) -> None:
    run = WatchedRun(tmp_path / "control.sock", read_only=True)
    try:
        async with RunClient(run.socket_path) as client:
            commands: list[Callable[[], Awaitable[object]]] = [
                client.pause, client.pause_now, client.resume, client.step_group, client.stop, client.evaluate_now,
                partial(client.cancel_group, 1), partial(client.requeue_group, 1),
            ]  # fmt: skip
            for command in commands:
                with pytest.raises(RefusedError, match="read-only") as refused:
                    await command()
                assert refused.value.status == 403
            assert (await client.snapshot()).run.run_id == "run-1"
    finally:
        run.monitor.close()
    assert run.commands.given == []


@pytest.mark.parametrize(
    "path",
    [
        "/snapshot?known=nonsense", "/snapshot?known=queue:x", "/stream?hz=0", "/stream?hz=1000", "/stream?hz=nan",
        "/groups?limit=0", "/groups?limit=1e9", "/groups?older_than=x",
    ],
)  # fmt: skip
async def test_a_wrong_value_is_answered_with_what_is_wrong(raw: httpx.AsyncClient, path: str) -> None:
    answer = await raw.get(path)
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_only_the_owner_may_connect(run: WatchedRun) -> None:
    assert stat.S_IMODE(run.socket_path.stat().st_mode) == 0o600


async def test_a_stream_ends_in_order_with_the_last_word_when_the_worker_ends(
    run: WatchedRun, client: RunClient
) -> None:
    async with aclosing(client.stream(hz=4)) as snapshots:
        await asyncio.wait_for(anext(snapshots), LIMIT)
        run.stream.publish(BacklogChanged, size=99)
        closing = threading.Thread(target=run.monitor.close)
        closing.start()
        rest = [snapshot async for snapshot in snapshots]
    closing.join(LIMIT)
    assert rest[-1].queue.backlog == 99
    assert not run.socket_path.exists()


async def test_nobody_there_is_a_clear_error_and_the_same_client_works_once_somebody_is(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with RunClient(path) as client:
        with pytest.raises(UnreachableError, match="does not answer"):
            await client.snapshot()
        with pytest.raises(UnreachableError, match="does not answer"):
            await anext(client.stream())
        for _ in range(2):
            run = WatchedRun(path)
            try:
                assert (await client.snapshot()).run.run_id == "run-1"
                async with aclosing(client.stream()) as snapshots:
                    assert (await anext(snapshots)).run.run_id == "run-1"
            finally:
                run.monitor.close()
            with pytest.raises(UnreachableError):
                await client.snapshot()


async def test_a_connection_cut_in_the_middle_is_a_clear_error(tmp_path: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
        await writer.drain()
        writer.close()

    path = tmp_path / "control.sock"
    async with await asyncio.start_unix_server(hang_up, path), RunClient(path) as client:
        with pytest.raises(UnreachableError):
            await anext(client.stream())


@pytest.mark.parametrize("answer", [b"404 Not Found", b"200 OK"])
async def test_what_answers_and_is_no_run_is_called_that(tmp_path: Path, answer: bytes) -> None:
    async def answer_anything(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"detail":"Not Found"}'
        writer.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (answer, len(body), body))
        await writer.drain()
        writer.close()

    path = tmp_path / "control.sock"
    async with await asyncio.start_unix_server(answer_anything, path), RunClient(path) as client:
        with pytest.raises(UnreachableError, match="is no run; give the HOST:PORT"):
            await client.health()


async def test_an_answer_that_is_no_snapshot_is_a_clear_error(tmp_path: Path) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{"a": 1}')
        await writer.drain()
        writer.close()

    path = tmp_path / "control.sock"
    async with await asyncio.start_unix_server(babble, path), RunClient(path) as client:
        with pytest.raises(UnreachableError, match="same version"):
            await client.snapshot()


def test_a_second_worker_on_the_same_socket_is_refused_and_a_dead_ones_socket_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    first = bind_unix(path)
    with pytest.raises(UsageError, match="another worker"):
        bind_unix(path)
    first.close()
    assert path.exists()
    bind_unix(path).close()


async def _until(snapshots: AsyncIterator[RunSnapshot], wanted: Any) -> RunSnapshot:
    async with asyncio.timeout(LIMIT):
        async for snapshot in snapshots:
            if wanted(snapshot):
                return snapshot
    raise AssertionError("the stream ended")
