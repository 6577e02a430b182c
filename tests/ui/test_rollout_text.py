"""Messages and tokens of a rollout as lines."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from atropos_tui.monitor.group_detail import RolloutDetail
from atropos_tui.ui.ink import Ground, Ink
from atropos_tui.ui.views.messages import MessageText, Reading
from atropos_tui.ui.views.rollout_head import rollout_facts, score_chips
from atropos_tui.ui.views.side_by_side import SideBySide
from atropos_tui.ui.views.text import Text
from atropos_tui.ui.views.token_view import Lens, TokenLayout, TokenView, legend, token_facts
from atropos_tui.ui.views.tokens import Tokens, first_difference

ROLLOUT = RolloutDetail(
    score=0.5,
    tokens=(1, 2, 3, 4, 5),
    pieces=("ask", " >", "\n", "ab", "c"),
    masks=(-100, -100, -100, 4, 5),
    logprobs=(1.0, 1.0, 1.0, -0.1, -6.0),
    advantages=(0.0, 0.0, 0.0, 0.5, -0.5),
    ref_logprobs=(1.0, 1.0, 1.0, -0.15, -1.0),
)


def view(rollout: RolloutDetail, lens: Lens, cursor: int = 0, width: int = 40) -> TokenView:
    return TokenView(TokenLayout(Tokens(rollout), width), lens, cursor)


def text(lines: Text) -> list[str]:
    return [lines[index].plain for index in range(len(lines))]


class TestTokens:
    def test_a_line_feed_shows_and_ends_its_row(self) -> None:
        assert text(view(ROLLOUT, Lens.MASK, cursor=0))[::2] == ["ask >↵", "abc"]

    @pytest.mark.parametrize(
        ("lens", "lane"), [(Lens.MASK, "╺╸╸"), (Lens.LOGPROB, "▁▁█"), (Lens.ADVANTAGE, "++−"), (Lens.REFERENCE, "··▼")]
    )
    def test_the_lane_says_without_colour_what_the_lens_shows(self, lens: Lens, lane: str) -> None:
        lanes = text(view(ROLLOUT, lens, cursor=0))[1::2]
        assert lanes == [" " * 6, lane]

    def test_masked_tokens_are_dim_under_every_lens(self) -> None:
        for lens in Lens:
            assert {span.ink for span in view(ROLLOUT, lens, cursor=4)[0].spans} == {Ink.DIM}

    def test_a_logprob_of_one_is_a_placeholder_and_never_read_as_a_probability(self) -> None:
        facts = token_facts(Tokens(ROLLOUT)[0], 5, 200).plain
        assert "logprob not sampled" in facts
        assert "logprob -0.100 (90.5%)" in token_facts(Tokens(ROLLOUT)[3], 5, 200).plain

    def test_lists_of_another_length_than_the_tokens_are_not_trusted(self) -> None:
        tokens = Tokens(replace(ROLLOUT, logprobs=(-1.0,), advantages=(), pieces=("a",), masks=(1,)))
        assert [token.logprob for token in tokens] == [None] * 5
        assert [token.text for token in tokens][:2] == ["‹1›", "‹2›"]
        assert all(token.trained for token in tokens)

    def test_long_rows_wrap_and_a_token_longer_than_a_row_is_broken(self) -> None:
        rollout = RolloutDetail(score=None, tokens=(1, 2), pieces=("x" * 25, "y"), masks=(1, 2))
        assert text(view(rollout, Lens.MASK, width=10))[::2] == ["x" * 10, "x" * 10, "x" * 5 + "y"]

    def test_the_least_likely_come_first_and_masked_tokens_not_at_all(self) -> None:
        assert Tokens(ROLLOUT).least_likely == [4, 3]

    def test_numbers_that_are_none_are_shown_and_break_nothing(self) -> None:
        infinite = replace(
            ROLLOUT,
            score=float("nan"),
            logprobs=(1.0, 1.0, float("nan"), float("-inf"), -1.0),
            advantages=(float("nan"),) * 5,
        )
        for lens in Lens:
            assert len(text(view(infinite, lens, cursor=3))) == 4
        assert "0.0%" in token_facts(Tokens(infinite)[3], 5, 200).plain
        group = [infinite, replace(ROLLOUT, score=float("inf")), replace(ROLLOUT, score=None), ROLLOUT]
        assert score_chips(group, 0, None, 60)[1].plain.split() == ["nan", "inf", "–", "0.50"]
        assert "nan" in rollout_facts(infinite, group, Tokens(infinite), 200).plain
        assert "to the mean" not in rollout_facts(infinite, group, Tokens(infinite), 200).plain
        assert "(+0.00 to the mean)" in rollout_facts(ROLLOUT, group, Tokens(ROLLOUT), 200).plain

    def test_parts_of_the_score_come_before_what_else_there_is_where_room_is_short(self) -> None:
        told = replace(ROLLOUT, score=0.5, parts={"answer": 1.0, "format": 0.5, "brevity": 0.25}, finish_reason="stop")

        def facts(width: int) -> str:
            line = rollout_facts(told, [told], Tokens(told), width).plain
            assert len(line) <= width
            return line

        assert facts(200).startswith("score 0.5 (+0.00 to the mean)   ")
        assert facts(200).endswith("answer 1.00   format 0.50   brevity 0.25   finish stop")
        assert facts(60).startswith("score 0.5 (+0.00)  answer 1.00  format 0.50  brevity 0.25")
        assert facts(35) == "score 0.5 (+0.00)  answer 1.00"

    def test_two_hundred_thousand_tokens_are_laid_out_once_and_read_anywhere(self) -> None:
        many = 200_000
        rollout = RolloutDetail(score=1.0, tokens=(7,) * many, pieces=("word ",) * many, masks=(7,) * many)
        layout = TokenLayout(Tokens(rollout), 100)
        started = time.process_time()
        for cursor in range(0, many, 2_000):
            lines = TokenView(layout, Lens.MASK, cursor)
            assert lines[lines.cursor_line].plain
        assert time.process_time() - started < 2.0

    def test_the_line_of_the_cursor_is_known(self) -> None:
        assert view(ROLLOUT, Lens.MASK, cursor=4).cursor_line == 2
        assert view(ROLLOUT, Lens.MASK, cursor=1).cursor_line == 0


class TestTheReference:
    def test_a_group_without_one_says_so(self) -> None:
        told = legend(Lens.REFERENCE, Tokens(replace(ROLLOUT, ref_logprobs=()))).plain
        assert "none: no ref_logprobs, no distill_logprobs" in told

    def test_the_difference_is_told_of_a_token_and_in_the_mean(self) -> None:
        tokens = Tokens(ROLLOUT)
        assert "reference -1.000  difference -5.000" in token_facts(tokens[4], 5, 200).plain
        assert tokens.mean_difference == pytest.approx((0.05 - 5.0) / 2)
        assert "mean -2.475" in legend(Lens.REFERENCE, tokens).plain

    def test_what_the_reference_did_not_tell_has_no_difference(self) -> None:
        tokens = Tokens(replace(ROLLOUT, ref_logprobs=(1.0,) * 5))
        assert tokens[4].difference is None
        assert tokens.mean_difference is None


class TestPlaces:
    def test_edges_are_where_the_mask_changes(self) -> None:
        assert Tokens(ROLLOUT).mask_edges == [3]
        assert Tokens(replace(ROLLOUT, masks=(1, -100, 3, 4, -100))).mask_edges == [1, 2, 4]

    def test_two_rollouts_part_at_the_first_token_that_differs(self) -> None:
        other = Tokens(replace(ROLLOUT, tokens=(1, 2, 9, 4, 5)))
        assert first_difference(Tokens(ROLLOUT), other) == 2
        shorter = Tokens(RolloutDetail(score=None, tokens=(1, 2)))
        assert first_difference(Tokens(ROLLOUT), shorter) == 1


def plain(messages: list[dict[str, object]], width: int, **reading: object) -> list[str]:
    return text(MessageText(messages, width, Reading(**reading)))  # type: ignore[arg-type]


class TestMessages:
    def test_each_message_has_a_heading_and_its_text_in_full(self) -> None:
        messages: list[dict[str, object]] = [
            {"role": "user", "content": "one two three\nfour"}, {"role": "assistant", "content": ""},
        ]  # fmt: skip
        shown = MessageText(messages, 9)
        assert text(shown) == [
            "user  1/2", "▎ one two", "▎ three", "▎ four", "", "assistant  2/2", "▎ (empty)",
        ]  # fmt: skip
        assert shown.turns == [0, 5]
        assert [shown.turn_at(line) for line in (0, 4, 5, 6)] == [0, 0, 1, 1]

    def test_parts_tool_calls_and_reasoning_are_shown(self) -> None:
        message: dict[str, object] = {
            "role": "assistant",
            "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}],
            "reasoning_content": "hm",
            "tool_calls": [{"function": {"name": "search", "arguments": '{"q": 1}'}}],
        }
        shown = "\n".join(plain([message], 60))
        for part in ("▸ reasoning · 1 word", "see", "(image_url)", "→ search", '{"q": 1}'):
            assert part in shown
        assert "hm" not in shown
        assert "┆ hm" in "\n".join(plain([message], 60, unfolded=True))

    @pytest.mark.parametrize(
        ("content", "folded", "unfolded"),
        [
            ("<think>\nfirst\n</think>\n\nthen", ["▸", "then"], ["▾", "first", "then"]),
            ("before <think>a b</think> after", ["before ", "▸", " after"], ["before ", "▾", "a b", " after"]),
            ("<think>cut in its", ["▸"], ["▾", "cut in its"]),
            ("opened by the prompt\n</think>\nthen", ["▸", "then"], ["▾", "opened by the prompt", "then"]),
            ("<thinking>x</thinking>y", ["▸", "y"], ["▾", "x", "y"]),
            ("no thought", ["no thought"], ["no thought"]),
        ],
    )
    def test_thinking_is_folded_wherever_it_stands(self, content: str, folded: list[str], unfolded: list[str]) -> None:
        for wanted, is_unfolded in ((folded, False), (unfolded, True)):
            lines = plain([{"role": "assistant", "content": content}], 60, unfolded=is_unfolded)[1:]
            assert [line[2:3] if line[2:3] in "▸▾" else line[2:] for line in lines] == wanted

    def test_searched_words_are_marked_and_unfold_what_hides_them(self) -> None:
        messages: list[dict[str, object]] = [
            {"role": "user", "content": "A Bus, and nothing else that would be short"},
            {"role": "assistant", "content": "<think>the bus\nis late</think>no"},
        ]
        shown = MessageText(messages, 20, Reading(words=("bus", "late")))
        assert [shown[hit].plain for hit in shown.hits] == ["▎»A Bus, and nothing", "┆»the bus", "┆»is late"]
        marked = [span.text for span in shown[shown.hits[0]].spans if span.ground is Ground.SELECTED]
        assert marked == ["Bus"]

    def test_markdown_loses_its_marks_and_nothing_else(self) -> None:
        content = "# Head #\n**b** *i* `c` 2*3*4\n- one\n> said\n---\n```py\nx = **y**\n```\nplain"
        lines = [line[2:] for line in plain([{"role": "user", "content": content}], 60, markdown=True)[1:]]
        assert lines == ["Head", "b i c 2*3*4", "• one", "│ said", "─" * 24, "  x = **y**", "plain"]

    @pytest.mark.parametrize("content", [None, 7, {"a": 1}, [None, 3, {"type": "x"}]])
    def test_content_of_any_shape_is_survived(self, content: object) -> None:
        plain([{"role": None, "content": content, "tool_calls": [None, {"function": 3}, 7]}, {}], 20)

    def test_a_message_of_two_hundred_thousand_tokens_is_laid_out_once_and_read_anywhere(self) -> None:
        for word in ("word ", "漢字", "é\x1b[0m "):
            started = time.process_time()
            shown = MessageText([{"role": "assistant", "content": word * 200_000}], 100)
            for line in range(0, len(shown), 97):
                assert shown[line].width <= 100
            assert time.process_time() - started < 2.0


class TestSideBySide:
    def test_messages_of_the_same_number_begin_on_the_same_line(self) -> None:
        left = MessageText([{"role": "user", "content": "a\nb\nc"}, {"role": "assistant", "content": "x"}], 10)
        right = MessageText([{"role": "user", "content": "a"}, {"role": "assistant", "content": "x\ny"}], 10)
        shown = SideBySide(left, right, 23)
        rows = [line.split("│") for line in text(shown)]
        assert [(a.strip(), b.strip()) for a, b in rows] == [
            ("user  1/2", "user  1/2"), ("▎ a", "▎ a"), ("▎ b", ""), ("▎ c", ""), ("", ""),
            ("assistant…", "assistant…"), ("▎ x", "▎ x"), ("", "▎ y"),
        ]  # fmt: skip
        assert shown.turns == [0, 5]

    def test_a_text_with_fewer_messages_ends_earlier(self) -> None:
        left = MessageText([{"role": "user", "content": "a"}], 10)
        right = MessageText([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], 10)
        assert [row.split("│")[1].strip() for row in text(SideBySide(left, right, 23))][-1] == "▎ b"

    def test_hits_of_either_side_are_found_where_they_are_shown(self) -> None:
        def reading(*contents: str) -> MessageText:
            messages = [{"role": "user", "content": content} for content in contents]
            return MessageText(messages, 10, Reading(words=("x",)))

        shown = SideBySide(reading("a\nb\nx", "c"), reading("x", "x"), 23)
        assert [shown[hit].plain.count("»") for hit in shown.hits] == [1, 1, 1]
