"""Tool calls that a model wrote as JSON between tags."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

logger = logging.getLogger(__name__)

ERROR = "-ERROR-"


def extract_tool_call(text: str, preferred_tags: Sequence[str] | None = None) -> str | None:
    """What stands between the first pair of tags, of the first of `preferred_tags` that occurs; None if none does."""
    for tag in preferred_tags or ("tool_call",):
        found = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        if found:
            return found.group(1).strip()
    return None


def parse_tool_call(
    response: str,
    available_tools: Sequence[Mapping[str, Any]] | None = None,
    preferred_tags: Sequence[str] | None = None,
) -> tuple[str, dict[str, Any], bool]:
    """Name and arguments of the first tool call in a response, and whether it is an error.

    For no call, one that cannot be read, or a tool that is not available: `("-ERROR-", arguments, True)`, where the
    arguments are empty unless they could be read. Single quotes instead of JSON's double ones are understood.
    """
    content = extract_tool_call(response or "", preferred_tags)
    if not content:
        logger.debug("no tool call in a response of %d characters", len(response or ""))
        return ERROR, {}, True
    call = _read(content)
    if call is None:
        logger.debug("a tool call that is no JSON object: %.200s", content)
        return ERROR, {}, True
    name, arguments = call.get("name", ""), call.get("arguments", {})
    if available_tools and name not in set(_names(available_tools)):
        return ERROR, arguments, True
    return name, arguments, False


def _read(content: str) -> dict[str, Any] | None:
    """The object, written in JSON, in Python, or in JSON with single quotes."""
    for read in (_json, ast.literal_eval, _json_in_single_quotes):
        try:
            call = read(content)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if isinstance(call, dict):
            return call
    return None


def _json(content: str) -> Any:
    return json.loads(content, strict=False)


def _json_in_single_quotes(content: str) -> Any:
    return _json(content.replace("'", '"'))


def _names(tools: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Names of tools in either form: `{"name": …}` or `{"type": "function", "function": {"name": …}}`."""
    for tool in tools:
        if isinstance(tool, Mapping):
            function = tool.get("function")
            name = tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
            if isinstance(name, str):
                yield name
