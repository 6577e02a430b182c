"""Names of atroposlib that no environment needs and scripts and tests of authors use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atropos_tui.compat.batches import (
    find_groups_summing_to_target,
    grab_batch_with_minimum_allocations,
    grab_exact_from_heterogeneous_queue,
)
from atropos_tui.compat.html_groups import create_html_for_group
from atropos_tui.compat.tool_call_translator import ToolCallTranslator
from atropos_tui.errors import UsageError


def groups(*sizes: int, env_id: int | None = None) -> list[dict[str, Any]]:
    return [{"tokens": [[0]] * size, "env_id": env_id} for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "target", "chosen"),
    [((2, 2, 4), 4, [0, 1]), ((3, 1, 4), 5, [1, 2]), ((2, 4), 3, []), ((), 4, []), ((1, 1, 1), 2, [0, 1])],
)
def test_the_oldest_groups_that_fit_make_a_batch(sizes: tuple[int, ...], target: int, chosen: list[int]):
    queue = groups(*sizes)
    assert find_groups_summing_to_target(queue, target) == chosen
    batch, left = grab_exact_from_heterogeneous_queue(queue, target)
    assert batch == ([queue[index] for index in chosen] or None)
    assert left == [group for index, group in enumerate(queue) if index not in chosen]


def test_each_connected_environment_has_its_share_of_a_batch():
    queue = [*groups(2, 2, 2, env_id=0), *groups(2, 2, env_id=1)]
    shares = [
        {"registered_id": 0, "connected": True, "min_batch_allocation": None},
        {"registered_id": 1, "connected": True, "min_batch_allocation": 0.5},
        {"registered_id": 2, "connected": False, "min_batch_allocation": 0.9},
    ]
    batch, left = grab_batch_with_minimum_allocations(queue, 4, shares)
    assert batch is not None
    assert [group["env_id"] for group in batch] == [0, 1]
    assert [group["env_id"] for group in left] == [0, 0, 1]


def test_a_share_that_cannot_be_had_leaves_the_queue_alone_and_shares_above_the_batch_are_cut():
    queue = [*groups(2, env_id=0), *groups(2, env_id=1)]

    def shares(*parts: float) -> list[dict[str, Any]]:
        rows = enumerate(parts)
        return [{"registered_id": env, "connected": True, "min_batch_allocation": part} for env, part in rows]

    assert grab_batch_with_minimum_allocations(queue, 4, shares(0.7, 0.0, 0.3)) == (None, queue)
    batch, left = grab_batch_with_minimum_allocations(queue, 4, shares(0.7, 0.6))
    assert (batch, left) == (queue, [])


def test_a_group_is_shown_as_html():
    html = create_html_for_group({"messages": [[{"role": "user", "content": "two & two"}]], "scores": [1.0]}, 3)
    assert "Group 3" in html
    assert "two &amp; two" in html
    assert create_html_for_group({"messages": [], "scores": []}, 0) == ""


CALL = '<tool_call>{"name":  "search", "arguments": {"q": "cats"}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "search"}}]


def test_tool_calls_are_read_and_written_back_as_they_were():
    translator = ToolCallTranslator(tokenizer=None)
    content, calls, reason = translator.parse_model_output(CALL, tool_choice="auto", tools=TOOLS)
    assert (content, reason) == (None, "tool_calls")
    assert calls is not None
    assert (calls[0].function.name, json.loads(calls[0].function.arguments)) == ("search", {"q": "cats"})
    turn = {"role": "assistant", "content": "I look.", "tool_calls": [calls[0].model_dump()]}
    user = {"role": "user", "content": "Find cats"}
    assert translator.convert_messages_for_template([user, turn]) == [
        user, {"role": "assistant", "content": f"I look.\n{CALL}"},
    ]  # fmt: skip


def test_calls_of_elsewhere_are_written_as_a_model_would():
    call = {"id": "other", "type": "function", "function": {"name": "search", "arguments": '{"q": "dogs"}'}}
    text = ToolCallTranslator(tokenizer=None).reconstruct_raw_text_from_tool_calls([call])
    assert ToolCallTranslator(tokenizer=None).parse_model_output(text, tools=TOOLS)[2] == "tool_calls"
    assert '"dogs"' in text


@pytest.mark.parametrize(
    "how", [{"tools": None}, {"tools": TOOLS, "tool_choice": "none"}, {"tools": TOOLS, "text": "<tool_call>no"}]
)
def test_text_without_calls_that_are_wanted_stays_text(how: dict[str, Any]):
    text = how.pop("text", CALL)
    assert ToolCallTranslator(tokenizer=None).parse_model_output(text, **how) == (text, None, "stop")


def test_a_parser_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match="'pidgin'"):
        ToolCallTranslator(tokenizer=None, parser_name="pidgin")
