"""Each of the five problems shows on the dashboard, and at most three keys lead to its cause."""

from __future__ import annotations

import pytest

from docs.make_walkthrough import PICTURES, until_shown, watching
from docs.troubles import TROUBLES, Trouble
from tests.docs.pages import ROOT


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
async def test_a_trouble_is_found_from_the_dashboard(trouble: Trouble, size: tuple[int, int]) -> None:
    assert len(trouble.keys) <= 3
    async with watching(trouble, size) as pilot:
        for key in trouble.keys:
            await pilot.press(key)
        await until_shown(pilot, trouble.cause)


def test_the_page_shows_each_with_its_pictures() -> None:
    page = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
    for trouble in TROUBLES:
        for picture in (f"{trouble.name}_1.svg", f"{trouble.name}_2.svg"):
            assert f"pictures/{picture}" in page
            assert (PICTURES / picture).is_file()
