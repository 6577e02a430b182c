"""Tool calls in the formats that models write, and text that only looks like them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.errors import UsageError
from atropos_tui.inference.tool_parsers import PARSERS, parser_named

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "exact": {"type": "boolean"}, "note": {"type": "string"}},
            },
        },
    }
]


def called(parser: str, text: str) -> tuple[str | None, list[tuple[str, Any]]] | None:
    """The content, and each call as its name and arguments."""
    parsed = parser_named(parser)(text, TOOLS)
    if parsed is None:
        return None
    content, calls = parsed
    assert all(call["type"] == "function" and call["id"] for call in calls)
    return content, [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize(
    ("parser", "text", "content", "calls"),
    [
        ("hermes", 'So: <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', "So: ", [("add", {"a": 1})]),
        ("hermes", '<tool_call>\n{"name": "add"}\n</tool_call>', None, [("add", {})]),
        ("qwen3_json", '<tool_call>{"name": "f", "arguments": {}}', None, [("f", {})]),
        ("llama3_json", '{"name": "add", "parameters": {"a": {"b": [1]}}}', None, [("add", {"a": {"b": [1]}})]),
        ("llama3_json", 'Yes. <|python_tag|>{"name": "f", "arguments": {}}', "Yes.", [("f", {})]),
        (
            "llama4_json",
            '{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"x": "}"}}',
            None,
            [("f", {}), ("g", {"x": "}"})],
        ),
        ("mistral", 'Ok [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]', "Ok ", [("f", {"a": 1})]),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g-2[ARGS]{}', None, [("f", {"a": 1}), ("g-2", {})]),
        ("mistral", '[TOOL_CALLS]f{"a": 1}', None, [("f", {"a": 1})]),
        ("mistral", '[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{"a": 1}', None, [("f", {"a": 1})]),
        (
            "qwen3_coder",
            "I add.\n<tool_call>\n<function=add>\n<parameter=a>\n41\n</parameter>\n<parameter=exact>\nTrue\n"
            "</parameter>\n<parameter=note>\n5\nlines\n</parameter>\n</function>\n</tool_call>",
            "I add.\n",
            [("add", {"a": 41, "exact": True, "note": "5\nlines"})],
        ),
        (
            "qwen3_xml",
            "<tool_call>\n<function=other>\n<parameter=a>\n41\n</parameter>\n</function>\n</tool_call>\n"
            "<tool_call>\n<function=add>\n</function>\n</tool_call>",
            None,
            [("other", {"a": "41"}), ("add", {})],
        ),
    ],
)
def test_a_call_is_read(parser: str, text: str, content: str | None, calls: list[tuple[str, Any]]) -> None:
    assert called(parser, text) == (content, calls)


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        ("hermes", "<tool_call>{broken</tool_call>"),
        ("hermes", '<think><tool_call>{"name": "f"}</tool_call></think>no'),
        ("llama3_json", "the set {1, 2}"),
        ("llama3_json", '{"name": "f"}'),
        ("llama3_json", '{"name": "f", "parameters": {}} and {broken'),
        ("mistral", "[TOOL_CALLS] nothing"),
        ("mistral", '[TOOL_CALLS][{"arguments": {}}]'),
        ("mistral", "[TOOL_CALLS][]"),
        ("mistral", '[TOOL_CALLS]{"name": "f"}'),
        ("qwen3_coder", "<tool_call></tool_call>"),
        ("qwen3_coder", "<function=add><parameter=a>\nmany\n</parameter></function>"),
    ],
)
def test_what_is_not_well_formed_is_no_call(parser: str, text: str) -> None:
    assert called(parser, text) is None


def test_mistrals_ids_are_of_the_form_that_its_templates_accept() -> None:
    parsed = parser_named("mistral")("[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]f[ARGS]{}", ())
    assert parsed is not None
    ids = [call["id"] for call in parsed[1]]
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert len(set(ids)) == 2


def test_an_unknown_parser_is_refused_with_the_names_that_are_known() -> None:
    with pytest.raises(UsageError, match="no tool parser 'klingon'; choose one of: hermes, qwen3_json"):
        parser_named("klingon")


@given(parser=st.sampled_from(sorted(PARSERS)), text=st.text("<>{}[]\"':;/=, \naf") | st.text())
def test_no_text_breaks_a_parser(parser: str, text: str) -> None:
    for marked in (text, f"<tool_call>{text}", f"[TOOL_CALLS]{text}", f"<function={text}>{text}", f"{{{text}"):
        called(parser, marked)


ARGUMENTS = st.dictionaries(
    st.text("abc", min_size=1), st.none() | st.booleans() | st.integers() | st.text(), max_size=3
)


@given(name=st.from_regex(r"[a-z_]{1,9}", fullmatch=True), arguments=ARGUMENTS)
def test_what_is_written_in_a_format_is_read_back(name: str, arguments: dict[str, Any]) -> None:
    value = json.dumps(arguments)
    for parser, text in (
        ("hermes", f'<tool_call>{{"name": "{name}", "arguments": {value}}}</tool_call>'),
        ("llama3_json", f'{{"name": "{name}", "parameters": {value}}}'),
        ("mistral", f"[TOOL_CALLS]{name}[ARGS]{value}"),
    ):
        assert called(parser, text) == (None, [(name, arguments)])
