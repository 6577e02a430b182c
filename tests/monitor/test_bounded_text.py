"""Text that can be kept and sent whatever it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.monitor.bounded_text import bounded_tail, bounded_text, one_line

any_text = st.text(st.characters(codec=None, categories=None))


@given(any_text, st.integers(2, 30))
def test_any_text_becomes_encodable_and_bounded(text: str, limit: int) -> None:
    for bounded in (bounded_text(text, limit), bounded_tail(text, limit), one_line(text, limit)):
        bounded.encode()
        assert len(bounded) <= 6 * limit  # a lone surrogate takes six characters as an escape


def test_of_a_traceback_the_end_is_kept() -> None:
    assert bounded_tail("Traceback … KeyError: 'x'", 14) == "…KeyError: 'x'"


def test_white_space_is_one_blank() -> None:
    assert one_line("a\n\n  b\tc", 80) == "a b c"
