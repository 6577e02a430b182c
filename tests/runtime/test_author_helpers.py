"""The small functions that environments import: what upstream's did, without its faults."""

from __future__ import annotations

from typing import Any

import pytest

from atropos_tui.runtime.message_history import ensure_trajectory_token_limit, strip_thinking, truncate_thinking
from atropos_tui.runtime.selection import select_best_index
from atropos_tui.runtime.tokens import tokenize_for_trainer
from atropos_tui.runtime.tool_calls import extract_tool_call, parse_tool_call
from tests.runtime.chat_tokenizers import chat_tokenizer

TOKENIZER = chat_tokenizer("chatml")
TOOLS = [{"name": "hit"}, {"type": "function", "function": {"name": "stand"}}, "no tool"]


class TestToolCalls:
    @pytest.mark.parametrize(
        ("content", "arguments"),
        [
            ('{"name": "hit", "arguments": {"n": 1}}', {"n": 1}),
            ("{'name': 'hit', 'arguments': {'n': None}}", {"n": None}),
            ("{'name': 'hit', 'arguments': {'n': null}}", {"n": None}),
            ('{"name": "hit", "arguments": {"text": "don\'t"}}', {"text": "don't"}),
            ('{"name": "hit", "arguments": {"text": "two\nlines"}}', {"text": "two\nlines"}),
            ('{"name": "hit"}', {}),
        ],
    )
    def test_a_call_in_any_quotes_is_read(self, content: str, arguments: dict[str, Any]) -> None:
        response = f"I will.<tool_call>\n{content}\n</tool_call> So."
        assert parse_tool_call(response, TOOLS, ["tool_call"]) == ("hit", arguments, False)

    @pytest.mark.parametrize(
        "response",
        ["", "no call", "<call></call>", "<call>{half</call>", "<call>[1]</call>", "<call>{'a': [}</call>", "<call>{}"],
    )
    def test_what_is_no_call_is_an_error(self, response: str) -> None:
        response = response.replace("call>", "tool_call>")
        assert parse_tool_call(response, TOOLS) == ("-ERROR-", {}, True)

    def test_a_tool_that_is_not_there_is_an_error_that_keeps_the_arguments(self) -> None:
        response = '<tool_call>{"name": "fly", "arguments": {"to": "x"}}</tool_call>'
        assert parse_tool_call(response, TOOLS) == ("-ERROR-", {"to": "x"}, True)
        assert parse_tool_call(response) == ("fly", {"to": "x"}, False)

    def test_both_forms_of_tools_are_known(self) -> None:
        assert parse_tool_call('<tool_call>{"name": "stand"}</tool_call>', TOOLS) == ("stand", {}, False)

    def test_the_first_tag_that_occurs_is_taken(self) -> None:
        text = "<b> 2 </b><a> 1 </a><a>3</a>"
        assert extract_tool_call(text, ["none", "a", "b"]) == "1"
        assert extract_tool_call(text) is None


class TestSelection:
    @pytest.mark.parametrize(
        ("primary", "secondary", "options", "best"),
        [
            ([1, 3, 2], [0, 0, 0], {}, 1),
            ([1, 3, 2], [0, 0, 0], {"primary_higher_is_better": False}, 0),
            ([3, 3, 1], [9, 5, 0], {}, 1),
            ([3, 3, 1], [9, 5, 0], {"secondary_lower_is_better": False}, 0),
            ([2, 2], [1, 1], {}, 0),
            ([-1.5], [0], {}, 0),
        ],
    )
    def test_the_primary_score_decides_then_the_secondary_then_the_order(
        self, primary: list[float], secondary: list[float], options: dict[str, bool], best: int
    ) -> None:
        assert select_best_index(primary, secondary, **options) == best

    @pytest.mark.parametrize(("primary", "secondary"), [([], []), ([1], []), ([1, 2], [1])])
    def test_lists_that_do_not_fit_are_an_error(self, primary: list[float], secondary: list[float]) -> None:
        with pytest.raises(ValueError, match="scores"):
            select_best_index(primary, secondary)


class TestThinking:
    def test_the_block_can_be_taken_out(self) -> None:
        assert strip_thinking("a<think>b</think>c<think>d</think>") == "ac<think>d</think>"
        assert strip_thinking("a<think>b") == "a<think>b"

    @pytest.mark.parametrize("text", ["no block", "<think>open", "closed</think>", "</think>wrong way<think>"])
    def test_without_a_whole_block_nothing_changes(self, text: str) -> None:
        assert truncate_thinking(text, TOKENIZER, 3) == text

    def test_a_short_block_is_kept_and_set_on_lines_of_its_own(self) -> None:
        assert truncate_thinking("a <think> hm </think> b", TOKENIZER, 100) == "a <think>\nhm\n</think> b"

    def test_an_empty_block_is_closed(self) -> None:
        assert truncate_thinking("a <think> \n </think>b", TOKENIZER, 100) == "a <think></think>b"

    def test_the_last_paragraph_alone_is_kept_if_it_fits(self) -> None:
        text = "<think>first one, long\n\nsecond\n\nlast</think>4"
        assert truncate_thinking(text, TOKENIZER, 6) == "<think>\n... last\n</think>4"

    def test_else_the_end_is_kept(self) -> None:
        assert truncate_thinking("<think>0123456789</think>4", TOKENIZER, 3) == "<think>\n... 789\n</think>4"
        assert truncate_thinking("<think>01\n\n3456789</think>4", TOKENIZER, 3) == "<think>\n... 789\n</think>4"

    def test_with_no_room_nothing_is_kept(self) -> None:
        assert truncate_thinking("<think>0123456789</think>4", TOKENIZER, 0) == "<think></think>4"


class TestTrajectories:
    def test_a_step_that_fits_is_kept_as_it_is(self) -> None:
        step = step_of(2, turns=1)
        assert ensure_trajectory_token_limit([step], TOKENIZER, 10_000) == [step]
        assert ensure_trajectory_token_limit([step], TOKENIZER, 10_000)[0] is step

    def test_a_long_step_loses_its_oldest_turns_in_pairs_and_stays_consistent(self) -> None:
        step = step_of(2, turns=4)
        limit = longest(step_of(2, turns=2))
        (kept,) = ensure_trajectory_token_limit([step], TOKENIZER, limit)
        assert longest(kept) <= limit
        for messages, tokens, masks in zip(kept["messages"], kept["tokens"], kept["masks"], strict=True):
            assert messages == [step["messages"][0][0], *step["messages"][0][-4:]]
            assert {"tokens": tokens, "masks": masks} == tokenize_for_trainer(TOKENIZER, messages)
        assert (kept["seed"], kept["scores"], kept["parsed_actions"]) == (7, [0.0, 1.0], [0, 1])
        assert len(step["messages"][0]) == 9

    def test_the_first_message_the_last_reply_and_what_it_answers_stay(self) -> None:
        step = step_of(2, turns=3)
        least = step_of(2, turns=1)
        (kept,) = ensure_trajectory_token_limit([step], TOKENIZER, longest(least))
        assert [message["role"] for message in kept["messages"][0]] == ["system", "environment", "agent"]
        assert ensure_trajectory_token_limit([step], TOKENIZER, longest(least) - 1) == []

    def test_alternatives_without_old_turns_lose_none(self) -> None:
        step = step_of(2, turns=3)
        step["messages"][1] = step["messages"][1][:1] + step["messages"][1][-2:]
        (kept,) = ensure_trajectory_token_limit([step], TOKENIZER, longest(step) - 1)
        assert kept["messages"][1] == step["messages"][1]

    @pytest.mark.parametrize("field", ["messages", "tokens", "masks", "seed", "parsed_actions"])
    def test_a_step_that_lacks_something_is_left_out(self, field: str) -> None:
        whole = step_of(2, turns=1)
        broken = {name: value for name, value in whole.items() if name != field}
        assert ensure_trajectory_token_limit([broken, whole], TOKENIZER, 10_000) == [whole]

    def test_no_steps_are_no_steps(self) -> None:
        assert ensure_trajectory_token_limit([], TOKENIZER, 10) == []


def step_of(alternatives: int, turns: int) -> dict[str, Any]:
    messages: list[dict[str, str]] = [{"role": "system", "content": "play"}]
    for turn in range(turns):
        messages += [{"role": "environment", "content": f"see {turn}"}, {"role": "agent", "content": f"do {turn}"}]
    tokenized = tokenize_for_trainer(TOKENIZER, messages)
    return {
        "messages": [list(messages) for _ in range(alternatives)],
        "tokens": [tokenized["tokens"]] * alternatives,
        "masks": [tokenized["masks"]] * alternatives,
        "scores": [0.0, 1.0][:alternatives],
        "seed": 7,
        "parsed_actions": [0, 1],
    }


def longest(step: Any) -> int:
    return max(map(len, step["tokens"]))
