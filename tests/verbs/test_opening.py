"""The screen is loaded while the run is asked for its first snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.client import UnreachableError
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.verbs import open as open_verb
from atropos_tui.verbs import screen
from atropos_tui.verbs.opening import first_while_loading
from atropos_tui.verbs.printing import Streaming

NEWEST = RunSnapshot(seq=7, taken_at=1.8e9)


class Answering:
    """A run that tells its newest snapshot at once."""

    def __init__(self) -> None:
        self.closed = False

    async def stream(self) -> AsyncIterator[RunSnapshot]:
        try:
            await self.before()
            yield NEWEST
        finally:
            self.closed = True

    async def before(self) -> None:
        return


class Silent(Answering):
    """A run that takes the question and never answers."""

    async def before(self) -> None:
        await asyncio.Event().wait()


class Gone(Answering):
    """A run that cannot be reached."""

    async def before(self) -> None:
        raise UnreachableError("nobody is there")


async def test_what_the_run_tells_meanwhile_is_known_from_the_start() -> None:
    run = Answering()
    assert await first_while_loading(run) == NEWEST
    assert run.closed


async def test_a_run_that_does_not_answer_is_not_waited_for() -> None:
    run = Silent()
    async with asyncio.timeout(60):
        assert await first_while_loading(run) is None
    assert run.closed


async def test_a_run_that_cannot_be_reached_is_left_to_the_screen() -> None:
    run = Gone()
    assert await first_while_loading(run) is None
    assert run.closed


def test_open_begins_with_what_the_file_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_text('{"tokens": [[1, 2]], "masks": [[-100, 2]], "scores": [0.5]}\n')
    shown: list[object] = []

    async def at_leisure(source: Streaming) -> RunSnapshot:
        async with aclosing(source.stream()) as snapshots:  # type: ignore[type-var]  # streams are generators
            return await anext(snapshots)

    async def show_source(source: object, *, first: RunSnapshot | None = None, **how: object) -> None:
        del source, how
        shown.append(first and first.ledger.started)

    monkeypatch.setattr(open_verb, "first_while_loading", at_leisure)
    monkeypatch.setattr(screen, "show_source", show_source)
    monkeypatch.setattr(open_verb, "require_terminal", lambda instead: None)
    assert open_verb.main([str(path)]) == 0
    assert shown == [1]


@pytest.mark.parametrize("content", [b"root:x:0:0\nada:x:1:1\n", b"\x80\x04\x95pickle", b"a,b\n1,2\n"])
def test_a_file_that_is_no_jsonl_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(UsageError, match="other is neither a run file nor a JSONL of scored groups; name a run file"):
        open_verb.main([str(tmp_path / "other"), "--json"])


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b'# comment\n{"tokens": [[1]]}\n', b'{"tokens": [[' + b"1, " * 99_999]
)
def test_a_jsonl_that_begins_with_another_line_or_not_yet_is_opened(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "groups.jsonl").write_bytes(content)
    assert open_verb.main([str(tmp_path / "groups.jsonl"), "--json"]) == 0
    assert capsys.readouterr().out.startswith("{")
