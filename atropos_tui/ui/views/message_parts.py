"""What a message consists of: reasoning, text and tool calls, whatever shape the environment gave them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from atropos_tui.ui.text_safety import visible

_THINKING = re.compile(r"<think(?:ing)?>(?P<inside>.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL)
_END_OF_THINKING = re.compile(r"</think(?:ing)?>")


class Kind(StrEnum):
    """How a part is shown."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    NOTE = "note"


class Part(NamedTuple):
    """`name` is the function of a call. `text` may have several lines, and is not yet made visible."""

    kind: Kind
    text: str
    name: str = ""


def parts_of(message: Mapping[str, Any]) -> Iterator[Part]:
    """In order of reading: reasoning comes before what it led to."""
    for key in ("reasoning_content", "reasoning"):
        if message.get(key):
            yield Part(Kind.REASONING, str(message[key]))
    content = message.get("content")
    if isinstance(content, str):
        yield from _without_reasoning(content) if content else [Part(Kind.NOTE, "(empty)")]
    elif content is not None:
        for part in content if isinstance(content, list | tuple) else [content]:
            yield from _part_of_content(part)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        yield _call(call)


def sender(message: Mapping[str, Any]) -> str:
    """The name and the call that a message answers, where it has them."""
    named = [str(message[key]) for key in ("name", "tool_call_id") if message.get(key)]
    return visible("".join(f" · {name}" for name in named))


def _without_reasoning(content: str) -> Iterator[Part]:
    """`<think>` may be left open by a reply that was cut, or opened by the prompt and only closed by the reply."""
    closed = _END_OF_THINKING.search(content)
    opened = content.find("<think")
    if closed is not None and not 0 <= opened < closed.start():
        yield Part(Kind.REASONING, content[: closed.start()].strip("\n"))
        content = content[closed.end() :].lstrip("\n")
    at = 0
    for thought in _THINKING.finditer(content):
        if before := content[at : thought.start()].strip("\n"):
            yield Part(Kind.TEXT, before)
        yield Part(Kind.REASONING, thought["inside"].strip("\n"))
        at = thought.end()
    if rest := (content[at:].lstrip("\n") if at else content):
        yield Part(Kind.TEXT, rest)


def _part_of_content(part: Any) -> Iterator[Part]:
    """OpenAI's parts of content; those that are no text are named."""
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        yield from _without_reasoning(part["text"])
    else:
        kind = part.get("type", "part") if isinstance(part, Mapping) else type(part).__name__
        yield Part(Kind.NOTE, f"({kind})")


def _call(call: Any) -> Part:
    function = call.get("function", {}) if isinstance(call, Mapping) else {}
    if not isinstance(function, Mapping):
        return Part(Kind.CALL, "", "?")
    arguments = function.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return Part(Kind.CALL, text, str(function.get("name", "?")))
