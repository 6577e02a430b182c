"""Tool calls of a dialogue: written into text, and compared. How they are read out of text says `tool_parsers`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

# Formats whose calls are written here, as in `as_text`. For the others the chat template does it.
WRITTEN_AS_TEXT = ("hermes", "qwen3_json")


def as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """An assistant's message with its tool calls written into the content, in the order a model writes them."""
    calls = message.get("tool_calls") or []
    parts = [message.get("content") or "", *(_written(call["function"]) for call in calls)]
    return {"role": "assistant", "content": "\n".join(part for part in parts if part)}


def _written(function: Mapping[str, Any]) -> str:
    call = {"name": function["name"], "arguments": parsed_arguments(function.get("arguments"))}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def for_template(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message with the arguments of its tool calls as values, which is how chat templates want them."""
    calls = [
        {**call, "function": {**call["function"], "arguments": parsed_arguments(call["function"].get("arguments"))}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


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
