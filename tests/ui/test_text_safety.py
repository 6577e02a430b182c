"""Whatever a model writes, the terminal is given nothing to obey."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.wrapping import wrapped

any_text = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve — 漢字", "plain text, naïve — 漢字"),
        ("[bold]markup[/bold] $var {x}", "[bold]markup[/bold] $var {x}"),
        ("\x1b[31mred\x1b[0m", "‹ESC›[31mred‹ESC›[0m"),
        ("\x9b31m", "‹CSI›31m"),
        ("bell\x07 nul\x00 del\x7f", "bell‹BEL› nul‹NUL› del‹DEL›"),
        ("two\nlines", "two↵lines"),
        ("a\tb", "a→   b"),
        ("evil\u202etxt.exe", "evil‹RLO›txt.exe"),
        ("zero\u200bwidth\ufeff", "zero‹ZWSP›width‹BOM›"),
        ("tag\U000e0041", "tag‹U+E0041›"),
        ("lone\udc80surrogate", "lone‹U+DC80›surrogate"),
        ("private\ue000use", "private‹U+E000›use"),
        ("heart❤\ufe0f", "heart❤"),
        ("hidden\ufe0f\ufe01bytes", "hidden‹U+FE0F›‹U+FE01›bytes"),
        ("no\u00a0break", "no break"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_a_character_that_does_not_show_by_itself_gets_a_stand_in(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_stacked_combining_marks_end_after_a_few() -> None:
    shown = visible("z" + "\u0335" * 50)
    assert sum(unicodedata.combining(character) > 0 for character in shown) == 4
    assert shown.count("‹U+0335›") == 46


def test_lines_break_at_line_feeds_only_and_lose_the_carriage_return_before_one() -> None:
    assert visible_lines("a\r\nb\rc\u2028d\n") == ["a", "b‹CR›c‹LS›d", ""]


@given(any_text)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    for character in visible(text):
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"), repr(character)


@given(any_text)
def test_what_is_shown_can_be_sent_to_a_terminal_as_utf8(text: str) -> None:
    visible(text).encode("utf-8")


@given(any_text.map(visible), st.integers(2, 40))
def test_wrapping_loses_nothing_but_blanks_and_keeps_to_the_width(line: str, width: int) -> None:
    parts = wrapped(line, width)
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")
    assert all(cell_len(part) <= width for part in parts)


def test_words_stay_whole_where_a_blank_is_near() -> None:
    assert wrapped("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrapped("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_a_line_of_hundreds_of_thousands_of_characters_wraps_within_two_seconds() -> None:
    line = visible("words and words " * 30_000)
    started = time.process_time()
    parts = wrapped(line, 100)
    assert time.process_time() - started < 2.0
    assert len(parts) > 4_800
