"""Tool calls read out of what a model sampled, by the names that vLLM's `--tool-call-parser` has for the formats."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from atropos_tui.errors import UsageError

# Content before the calls, and the calls as OpenAI's dicts; None when the text has no well-formed call.
ParsedCalls: TypeAlias = tuple[str | None, list[dict[str, Any]]]
# Of a text, and of the tools (as OpenAI's API takes them) that its types are looked up in.
ToolParser: TypeAlias = Callable[[str, Sequence[Mapping[str, Any]]], ParsedCalls | None]

_TOOL_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_MISTRAL_CALLS = "[TOOL_CALLS]"
_MISTRAL_CALL = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*(\w+)\s*)?(?:\[ARGS\])?\s*(?=\{)")
_PYTHON_TAG = "<|python_tag|>"


def parser_named(name: str) -> ToolParser:
    """Raises UsageError for a name that is not known."""
    if name not in PARSERS:
        raise UsageError(f"there is no tool parser {name!r}", f"choose one of: {', '.join(PARSERS)}")
    return PARSERS[name]


def parse_hermes(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> ParsedCalls | None:
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes, Qwen 2.5 and Qwen 3 write it."""
    del tools
    found = list(_TOOL_CALL.finditer(text, _end_of_thought(text)))
    return _whole(text, found[0].start(), [_json_call(match.group(1)) for match in found]) if found else None


def parse_llama_json(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> ParsedCalls | None:
    """`{"name": …, "parameters": {…}}`, several separated by `;`, as Llama 3.1 and later write it, with or without
    `<|python_tag|>` before it."""
    del tools
    start = text.find("{", _end_of_thought(text))
    if start < 0:
        return None
    calls, at = [], start
    while (at := text.find("{", at)) >= 0:
        try:
            call, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return None
        calls.append(_call_of(call, "arguments", "parameters"))
    before = text[:start].rstrip()
    return _whole(before.removesuffix(_PYTHON_TAG).rstrip(), None, calls)


def parse_mistral(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> ParsedCalls | None:
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}]`, and since Mistral's tokenizer v11 `[TOOL_CALLS]name[ARGS]{…}`
    for each call. Their ids have nine letters and digits, which Mistral's chat templates insist on."""
    del tools
    content, found, rest = text.partition(_MISTRAL_CALLS)
    if not found:
        return None
    try:
        listed = json.loads(rest)
        calls = [_call_of(call, "arguments") for call in listed] if isinstance(listed, list) else [None]
    except ValueError:
        calls = [_mistral_call(part) for part in rest.split(_MISTRAL_CALLS)]
    return _whole(content, None, [call and {**call, "id": uuid.uuid4().hex[:9]} for call in calls])


def parse_qwen_xml(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> ParsedCalls | None:
    """`<tool_call><function=name><parameter=key>value</parameter>…</function></tool_call>`, as Qwen 3 Coder and Qwen
    3.5 write it. A value is text unless the tool's schema says otherwise."""
    found = list(_FUNCTION.finditer(text, _end_of_thought(text)))
    if not found:
        return None
    calls = [_xml_call(match.group(1).strip(), match.group(2), tools) for match in found]
    before = text[: found[0].start()]
    return _whole(before.rstrip().removesuffix("<tool_call>"), None, calls)


PARSERS: Mapping[str, ToolParser] = {
    "hermes": parse_hermes,
    "qwen3_json": parse_hermes,
    "llama3_json": parse_llama_json,
    "llama4_json": parse_llama_json,
    "mistral": parse_mistral,
    "qwen3_coder": parse_qwen_xml,
    "qwen3_xml": parse_qwen_xml,
}


def _end_of_thought(text: str) -> int:
    """Where a reply proper begins: calls that a model merely thinks about, in a `<think>` block, are none."""
    return text.rfind("</think>") + len("</think>") if "</think>" in text else 0


def _whole(text: str, end: int | None, calls: Sequence[dict[str, Any] | None]) -> ParsedCalls | None:
    """All the calls with the text before them, or None when one is not well-formed."""
    formed = [call for call in calls if call is not None]
    return (text[:end] or None, formed) if formed and len(formed) == len(calls) else None


def _json_call(text: str) -> dict[str, Any] | None:
    try:
        return _call_of(json.loads(text), "arguments", default={})
    except ValueError:
        return None


def _call_of(parsed: Any, *names: str, default: Any = None) -> dict[str, Any] | None:
    """A call from an object with a name, and the arguments under one of these names."""
    if not isinstance(parsed, Mapping) or "name" not in parsed:
        return None
    arguments = next((parsed[name] for name in names if name in parsed), default)
    return None if arguments is None else _call(str(parsed["name"]), arguments)


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {
        "id": f"call_{uuid.uuid4().hex}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _mistral_call(text: str) -> dict[str, Any] | None:
    match = _MISTRAL_CALL.match(text)
    if match is None:
        return None
    try:
        return _call(match.group(1), json.JSONDecoder().raw_decode(text, match.end())[0])
    except ValueError:
        return None


def _xml_call(name: str, body: str, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    types = _parameter_types(name, tools)
    values = {key.strip(): value.removeprefix("\n").removesuffix("\n") for key, value in _PARAMETER.findall(body)}
    try:
        return _call(name, {key: _typed(value, types.get(key)) for key, value in values.items()})
    except ValueError:
        return None


def _parameter_types(name: str, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON type of each parameter that a tool's schema gives one."""
    functions = [tool.get("function") or {} for tool in tools]
    schema = next((function.get("parameters") for function in functions if function.get("name") == name), None)
    return {key: value.get("type") for key, value in ((schema or {}).get("properties") or {}).items()}


def _typed(value: str, kind: Any) -> Any:
    """The value as its type wants it. Raises ValueError for one that is not of the type."""
    if kind in (None, "string"):
        return value
    # Models write Python's words as well as JSON's.
    return json.loads({"True": "true", "False": "false", "None": "null"}.get(value.strip(), value))
