"""Messages and tokens of a rollout as lines."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from atropos_tui.monitor.snapshot import RolloutDetail
from atropos_tui.ui.ink import Ink
from atropos_tui.ui.views.messages import message_lines
from atropos_tui.ui.views.rollout_head import rollout_facts, score_chips
from atropos_tui.ui.views.tokens import Lens, TokenLayout, TokenView, least_likely, token_facts, tokens_of

ROLLOUT = RolloutDetail(
    score=0.5,
    tokens=(1, 2, 3, 4, 5),
    pieces=("ask", " >", "\n", "ab", "c"),
    masks=(-100, -100, -100, 4, 5),
    logprobs=(1.0, 1.0, 1.0, -0.1, -6.0),
    advantages=(0.0, 0.0, 0.0, 0.5, -0.5),
)


def view(rollout: RolloutDetail, lens: Lens, cursor: int = 0, width: int = 40) -> TokenView:
    return TokenView(TokenLayout(tokens_of(rollout), width), lens, cursor)


def text(lines: TokenView) -> list[str]:
    return [lines[index].plain for index in range(len(lines))]


class TestTokens:
    def test_a_line_feed_shows_and_ends_its_row(self) -> None:
        assert text(view(ROLLOUT, Lens.MASK, cursor=0))[::2] == ["ask >↵", "abc"]

    @pytest.mark.parametrize(("lens", "lane"), [(Lens.MASK, "╺╸╸"), (Lens.LOGPROB, "▁▁█"), (Lens.ADVANTAGE, "++−")])
    def test_the_lane_says_without_colour_what_the_lens_shows(self, lens: Lens, lane: str) -> None:
        lanes = text(view(ROLLOUT, lens, cursor=0))[1::2]
        assert lanes == [" " * 6, lane]

    def test_masked_tokens_are_faint_under_every_lens(self) -> None:
        for lens in Lens:
            assert {span.ink for span in view(ROLLOUT, lens, cursor=4)[0].spans} == {Ink.FAINT}

    def test_a_logprob_of_one_is_a_placeholder_and_never_read_as_a_probability(self) -> None:
        facts = token_facts(tokens_of(ROLLOUT)[0], 5, 200).plain
        assert "logprob not sampled" in facts
        assert "logprob -0.100 (90.5%)" in token_facts(tokens_of(ROLLOUT)[3], 5, 200).plain

    def test_lists_of_another_length_than_the_tokens_are_not_trusted(self) -> None:
        tokens = tokens_of(replace(ROLLOUT, logprobs=(-1.0,), advantages=(), pieces=("a",), masks=(1,)))
        assert [token.logprob for token in tokens] == [None] * 5
        assert [token.text for token in tokens][:2] == ["‹1›", "‹2›"]
        assert all(token.trained for token in tokens)

    def test_long_rows_wrap_and_a_token_longer_than_a_row_is_broken(self) -> None:
        rollout = RolloutDetail(score=None, tokens=(1, 2), pieces=("x" * 25, "y"), masks=(1, 2))
        assert text(view(rollout, Lens.MASK, width=10))[::2] == ["x" * 10, "x" * 10, "x" * 5 + "y"]

    def test_the_least_likely_come_first_and_masked_tokens_not_at_all(self) -> None:
        assert least_likely(tokens_of(ROLLOUT)) == [4, 3]

    def test_numbers_that_are_none_are_shown_and_break_nothing(self) -> None:
        infinite = replace(
            ROLLOUT,
            score=float("nan"),
            logprobs=(1.0, 1.0, float("nan"), float("-inf"), -1.0),
            advantages=(float("nan"),) * 5,
        )
        for lens in Lens:
            assert len(text(view(infinite, lens, cursor=3))) == 4
        assert "0.0%" in token_facts(tokens_of(infinite)[3], 5, 200).plain
        group = [infinite, replace(ROLLOUT, score=float("inf")), replace(ROLLOUT, score=None), ROLLOUT]
        assert score_chips(group, 0, None, 60)[1].plain.split() == ["nan", "inf", "–", "0.50"]
        assert "nan" in rollout_facts(infinite, group, tokens_of(infinite), 200).plain

    def test_two_hundred_thousand_tokens_are_laid_out_once_and_read_anywhere(self) -> None:
        many = 200_000
        rollout = RolloutDetail(score=1.0, tokens=(7,) * many, pieces=("word ",) * many, masks=(7,) * many)
        layout = TokenLayout(tokens_of(rollout), 100)
        started = time.process_time()
        for cursor in range(0, many, 2_000):
            lines = TokenView(layout, Lens.MASK, cursor)
            assert lines[lines.cursor_line].plain
        assert time.process_time() - started < 2.0

    def test_the_line_of_the_cursor_is_known(self) -> None:
        assert view(ROLLOUT, Lens.MASK, cursor=4).cursor_line == 2
        assert view(ROLLOUT, Lens.MASK, cursor=1).cursor_line == 0


class TestMessages:
    def test_each_message_has_a_heading_and_its_text_in_full(self) -> None:
        lines = message_lines(
            [{"role": "user", "content": "one two three\nfour"}, {"role": "assistant", "content": ""}], 9
        )
        assert [line.plain for line in lines] == [
            "user  1/2", "▎ one two", "▎ three", "▎ four", "", "assistant  2/2", "▎ (empty)",
        ]  # fmt: skip

    def test_parts_tool_calls_and_reasoning_are_shown(self) -> None:
        message = {
            "role": "assistant",
            "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}],
            "reasoning_content": "hm",
            "tool_calls": [{"function": {"name": "search", "arguments": '{"q": 1}'}}],
        }
        shown = "\n".join(line.plain for line in message_lines([message], 60))
        for part in ("(reasoning_content) hm", "see", "(image_url)", "→ search", '{"q": 1}'):
            assert part in shown

    @pytest.mark.parametrize("content", [None, 7, {"a": 1}, [None, 3, {"type": "x"}]])
    def test_content_of_any_shape_is_survived(self, content: object) -> None:
        message_lines([{"role": None, "content": content, "tool_calls": [None, {"function": 3}, 7]}, {}], 20)
