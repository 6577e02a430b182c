"""Tool calls in a model's text: read out of what it sampled, and written back for the chat template."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from atropos_tui.errors import UsageError

# Content before the calls, and the calls as OpenAI's dicts; None when the text has no well-formed call.
ParsedCalls: TypeAlias = tuple[str | None, list[dict[str, Any]]]
ToolParser: TypeAlias = Callable[[str], ParsedCalls | None]

_HERMES_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)


def parse_hermes(text: str) -> ParsedCalls | None:
    """Calls as Hermes, Qwen and others write them: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

    Calls that a model merely thinks about, inside a `<think>` block, are none.
    """
    thought_end = text.rfind("</think>") + len("</think>") if "</think>" in text else 0
    found = list(_HERMES_CALL.finditer(text, thought_end))
    if not found:
        return None
    calls = [_call(match.group(1)) for match in found]
    if None in calls:
        return None
    return text[: found[0].start()] or None, [call for call in calls if call is not None]


PARSERS: Mapping[str, ToolParser] = {"hermes": parse_hermes}


def parser_named(name: str) -> ToolParser:
    """Raises UsageError for a name that is not known."""
    if name not in PARSERS:
        raise UsageError(f"there is no tool parser {name!r}", f"choose one of: {', '.join(PARSERS)}")
    return PARSERS[name]


def as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """An assistant's message with its tool calls written into the content, in the order a model writes them."""
    calls = message.get("tool_calls") or []
    parts = [message.get("content") or "", *(_written(call["function"]) for call in calls)]
    return {"role": "assistant", "content": "\n".join(part for part in parts if part)}


def _call(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
        name, arguments = parsed["name"], parsed.get("arguments", {})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return {
        "id": f"call_{uuid.uuid4().hex}",
        "type": "function",
        "function": {"name": str(name), "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _written(function: Mapping[str, Any]) -> str:
    call = {"name": function["name"], "arguments": parsed_arguments(function.get("arguments"))}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def parsed_arguments(arguments: Any) -> Any:
    """Arguments as a value, whether they come as JSON text or parsed already."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def same_calls(some: Sequence[Any] | None, others: Sequence[Any] | None) -> bool:
    """Whether two lists of tool calls are the same, however their arguments are spaced."""
    return [_essence(call) for call in some or ()] == [_essence(call) for call in others or ()]


def _essence(call: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    function = call.get("function") or {}
    return call.get("id"), function.get("name"), parsed_arguments(function.get("arguments"))
