"""Words that several panes have in common."""

from __future__ import annotations

import pytest

from atropos_tui.ui.phrases import item_preview


@pytest.mark.parametrize(
    ("item", "room", "shown"),
    [
        ("{'text': 'abc', 'n': 1}", 30, "{'text': 'abc', 'n': 1}"),
        ("{'text': 'abc', 'n': 1}", 10, "abc"),
        ('{"question": "How many?", "answer": 3}', 30, "How many?"),
        ("{'n': 12, 'text': 'abc'}", 10, "12"),
        ("a long text that is no dict", 10, "a long text that is no dict"),
        ("('tuple', 1, 2, 3, 4)", 10, "('tuple', 1, 2, 3, 4)"),
    ],
)
def test_of_a_dict_that_does_not_fit_the_first_value_is_shown(item: str, room: int, shown: str) -> None:
    assert item_preview(item, room) == shown
