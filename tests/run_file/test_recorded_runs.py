"""Recorded runs in the screen's terms: moments, seeking, growth, groups, and runs that died."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import Outcome, RunState
from atropos_tui.monitor.client import RefusedError
from atropos_tui.monitor.recorded.jsonl_run import JsonlRun
from atropos_tui.monitor.recorded.recorded_run import RecordedRun
from atropos_tui.monitor.snapshot import RunSnapshot
from tests.run_file.recorded_run import RecordedRun as Recording

LIMIT = 60.0


def no_pieces(ids: object) -> list[str]:
    return []


async def next_of(snapshots: AsyncIterator[RunSnapshot]) -> RunSnapshot:
    async with asyncio.timeout(LIMIT):
        return await anext(snapshots)


def delivered(snapshot: RunSnapshot) -> int:
    return snapshot.ledger.by_outcome.get(Outcome.DELIVERED, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


async def test_the_newest_moment_is_the_one_that_was_shown_live(path: Path) -> None:
    recording = Recording(path)
    for _ in range(5):
        recording.delivered()
    recording.failed()
    recording.write()
    live = recording.view.snapshot()
    recording.close()
    run = RecordedRun(path, no_pieces, is_alive=lambda: True)
    async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]
        shown = await next_of(snapshots)
    for section in ("ledger", "scores", "skipped", "evals"):
        assert getattr(shown, section) == getattr(live, section), section
    assert (shown.seq, shown.run.run_id, shown.sends.delivered) == (live.seq, "run-1", 5)
    await run.close()


async def test_a_run_whose_worker_is_gone_without_a_word_is_shown_as_crashed(path: Path) -> None:
    recording = Recording(path)
    recording.delivered()
    recording.close()
    run = RecordedRun(path, no_pieces, last_words="it was ended by SIGKILL")
    async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]
        shown = await next_of(snapshots)
    assert (shown.run.state, shown.run.why_ended) == (RunState.CRASHED, "it was ended by SIGKILL")
    assert delivered(shown) == 1
    await run.close()


async def test_a_file_that_is_being_written_is_followed(path: Path) -> None:
    recording = Recording(path)
    recording.delivered()
    recording.write()
    run = RecordedRun(path, no_pieces, is_alive=lambda: True)
    async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]
        assert delivered(await next_of(snapshots)) == 1
        recording.delivered()
        recording.write()
        assert delivered(await next_of(snapshots)) == 2
    page = await run.groups(limit=1)
    assert (page.rows[0].group_id, page.total, page.older_than) == (2, 2, 2)
    assert (await run.groups(search="answer")).total == 2
    assert len((await run.group(1)).rollouts) == 2
    with pytest.raises(RefusedError):
        await run.group(99)
    await run.close()
    recording.close()


async def test_a_recorded_run_refuses_commands(path: Path) -> None:
    Recording(path).close()
    run = RecordedRun(path, no_pieces)
    for command in (run.pause, run.resume, run.step_group, run.stop):
        with pytest.raises(AtroposError, match="cannot be commanded"):
            await command()
    await run.close()


def group(**fields: Any) -> dict[str, Any]:
    """As atroposlib writes it: keys that an environment left out are null."""
    nothing = {"ref_logprobs": None, "overrides": None, "group_overrides": None, "messages": None}
    return {"tokens": [[1, 2], [1, 3]], "masks": [[-100, 2], [-100, 3]], "scores": [0.0, 1.0]} | nothing | fields


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    return tmp_path / "groups.jsonl"


def write_lines(path: Path, *lines: Any) -> None:
    with path.open("a") as file:
        for line in lines:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")


async def test_a_jsonl_of_groups_opens_grows_and_tells_what_it_cannot_read(jsonl: Path) -> None:
    conversation = [[{"role": "user", "content": "why"}, {"role": "assistant", "content": word}] for word in "ab"]
    write_lines(
        jsonl,
        group(),
        group(messages=conversation, inference_logprobs=[[1.0, -0.5], [1.0, -0.25]]),
        group(messages=["decoded one", "decoded two"]),
        "{ not json",
        {"no": "group"},
        "",
        group(scores=[2.0, 3.0]),
    )
    with jsonl.open("a") as file:
        file.write('{"scores": [1.0')  # a line that is still being written
    run = JsonlRun(jsonl, decode=lambda ids: [f"<{token}>" for token in ids])
    async with aclosing(run.stream(20)) as snapshots:  # type: ignore[type-var]
        shown = await next_of(snapshots)
        assert (delivered(shown), shown.run.state, shown.ledger.balanced) == (4, RunState.FINISHED, True)
        told = {row.text.partition(":")[0] for row in shown.logs.rows}
        assert told == {"line 4 is no scored group", "line 5 is no scored group"}
        with jsonl.open("a") as file:
            file.write(', 2.0], "tokens": [[4], [5]]}\n')
        assert delivered(await next_of(snapshots)) == 5
    page = await run.groups(limit=2)
    assert ([row.group_id for row in page.rows], page.older_than, page.total) == ([8, 7], 7, 5)
    assert (await run.groups(search="decoded two")).rows[0].group_id == 3
    bare, scored, text = [await run.group(number) for number in (1, 2, 3)]
    assert (bare.rollouts[1].tokens, bare.rollouts[1].pieces, bare.rollouts[1].messages) == ((1, 3), ("<1>", "<3>"), ())
    assert scored.rollouts[0].messages == tuple(conversation[0])
    assert scored.rollouts[1].logprobs == (1.0, -0.25)
    assert scored.row.item == "why"
    assert text.rollouts[0].messages == ({"role": "user", "content": "decoded one"},)
    with pytest.raises(RefusedError):
        await run.group(4)


async def test_an_empty_jsonl_is_a_run_without_groups(jsonl: Path) -> None:
    write_lines(jsonl)
    run = JsonlRun(jsonl, no_pieces)
    async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]
        assert delivered(await next_of(snapshots)) == 0
    assert (await run.groups()).rows == ()
