"""The messages of a rollout, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from atropos_tui.ui.ink import Ink, Line, Span, dim, faint
from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.wrapping import wrapped

_ROLE_INKS = {"system": Ink.FAINT, "user": Ink.DIM, "assistant": Ink.ACCENT, "tool": Ink.WARN}


def message_lines(messages: Sequence[Mapping[str, Any]], width: int) -> list[Line]:
    """All messages in full: a heading with the role, then the text behind a bar of the role's ink."""
    lines: list[Line] = []
    for number, message in enumerate(messages, start=1):
        role = visible(str(message.get("role", "?")))
        ink = _ROLE_INKS.get(role, Ink.TEXT)
        if lines:
            lines.append(Line())
        lines.append(Line(Span(role, ink, bold=True), faint(f"  {number}/{len(messages)}{_sender(message)}")))
        bar = Line(Span("▎ ", ink))
        lines += [bar + Line(part) for line in _text_lines(message) for part in wrapped(line, width - 2)]
        lines += [bar + line for line in _tool_calls(message, width - 2)]
    return lines


def prose_lines(text: str, width: int, ink: Ink) -> list[Line]:
    """Plain text such as a traceback."""
    return [Line(Span(part, ink)) for line in visible_lines(text.rstrip()) for part in wrapped(line, width)]


def _sender(message: Mapping[str, Any]) -> str:
    named = [str(message[key]) for key in ("name", "tool_call_id") if message.get(key)]
    return visible("".join(f" · {name}" for name in named))


def _text_lines(message: Mapping[str, Any]) -> list[str]:
    """The content: a string, or OpenAI's list of parts of which those that are no text are named."""
    content = message.get("content")
    lines: list[str] = []
    for key in ("reasoning_content", "reasoning"):
        if message.get(key):
            lines += [f"({key}) {line}" for line in visible_lines(str(message[key]))]
    if isinstance(content, str):
        return lines + (visible_lines(content) if content else ["(empty)"])
    if content is None:
        return lines
    parts = content if isinstance(content, list | tuple) else [content]
    for part in parts:
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            lines += visible_lines(part["text"])
        else:
            kind = part.get("type", "part") if isinstance(part, Mapping) else type(part).__name__
            lines.append(visible(f"({kind})"))
    return lines


def _tool_calls(message: Mapping[str, Any], width: int) -> list[Line]:
    lines: list[Line] = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function", {}) if isinstance(call, Mapping) else {}
        arguments = function.get("arguments", "") if isinstance(function, Mapping) else ""
        name = function.get("name", "?") if isinstance(function, Mapping) else "?"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        lines.append(Line(Span(f"→ {visible(str(name))}", Ink.WARN, bold=True)))
        lines += [Line(dim(f"  {part}")) for line in visible_lines(text) for part in wrapped(line, width - 2)]
    return lines
