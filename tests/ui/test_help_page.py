"""Help and questions at 80 columns: nothing that they say is cut off, nor the id that a keymap names a key by."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.ui.dialog import Dialog
from atropos_tui.ui.help import HelpPage
from atropos_tui.ui.keys import Scope, commands
from tests.ui.conftest import MakeApp, until
from tests.ui.screen_steps import known, painted

DASHBOARD = (Scope.RUN, Scope.DASHBOARD, Scope.QUEUE, Scope.EVERYWHERE)


async def read_through(pilot: Pilot[Any]) -> str:
    """All pages, without the frame and with single blanks."""
    await pilot.press("question_mark")
    await until(pilot, lambda: pilot.app.screen.query(HelpPage))
    page = pilot.app.screen.query_one(HelpPage)
    pages: list[str] = []
    while not pages or "more lines" in pages[-1]:
        if pages:
            await pilot.press("pagedown")
            await until(pilot, lambda: painted(page) != pages[-1])
        pages.append(painted(page))
    return " ".join(line.strip("│╭╮╰╯─ ") for text in pages for line in text.splitlines())


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_nothing_of_it_is_cut_off(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await known(pilot)
        words = " ".join((await read_through(pilot)).split())
        for command in commands(DASHBOARD):
            assert command.id in words
            if size[0] == 80:
                assert command.help.rsplit(" ", 1)[-1] in words
        assert "…" not in words


async def test_capital_g_leads_to_its_end_and_g_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        await known(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: pilot.app.screen.query(HelpPage))
        page = pilot.app.screen.query_one(HelpPage)
        await pilot.press("G")
        await until(pilot, lambda: "app.quit" in painted(page) and "esc closes" in painted(page))
        await pilot.press("g")
        await until(pilot, lambda: "run.pause" in painted(page))


@pytest.mark.parametrize("keys", [("P",), ("E",), ("1", "x"), ("1", "b"), ("q",)])
async def test_nothing_of_a_question_is_cut_off_at_80_columns(make_app: MakeApp, keys: tuple[str, ...]) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await known(pilot)
        await pilot.press(*keys)
        await until(pilot, lambda: app.screen.query(Dialog))
        dialog = app.screen.query_one(Dialog)
        await until(pilot, lambda: "esc" in painted(dialog) or "close this question" in painted(dialog))
        assert "…" not in painted(dialog)
