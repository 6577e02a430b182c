"""The pages hold together: their links lead somewhere, and no command in them is left untried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, commands, links
from tests.docs.test_commands import ELSEWHERE, KINDS, kind_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert not [link for link in links(page) if not (page.parent / link).exists()]


def test_every_page_can_be_found_from_the_index() -> None:
    index = {page.resolve() for page in PAGES if page.parent.name == "docs"}
    (start,) = [page for page in PAGES if page.parent.name == "docs" and page.name == "README.md"]
    assert {(start.parent / link).resolve() for link in links(start)} >= index - {start.resolve()}


def test_every_command_is_of_a_kind_that_is_tried() -> None:
    untried = [command for command in commands() if kind_of(command.text) is None]
    assert not untried, f"neither in KINDS {sorted(KINDS)} nor in ELSEWHERE {ELSEWHERE}"
