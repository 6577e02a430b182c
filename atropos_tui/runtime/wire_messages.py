"""Messages of rollouts as the trajectory API wants them: `[sequence][message]` of objects with `role` and `content`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atropos_tui.errors import ContractError
from atropos_tui.runtime.plain_values import kind_of, plain_list

Message = dict[str, Any]


def wire_messages(value: object) -> list[list[Message]] | None:
    """The conversations of a group; None when it has none. Raises ContractError for what is no conversation."""
    if value is None:
        return None
    conversations = plain_list(value, "messages")
    if not any(conversations):
        return None
    return [conversation_of(entry, f"messages of sequence {index}") for index, entry in enumerate(conversations)]


def conversation_of(value: object, where: str) -> list[Message]:
    """One conversation. A bare text is one user message, as upstream sends decoded tokens."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return [_message(entry, f"{where}, message {index}") for index, entry in enumerate(plain_list(value, where))]


def _message(value: object, where: str) -> Message:
    """One message, with all further keys it has. A tool call may come without content, and gets null."""
    message = _as_mapping(value)
    if message is None:
        raise ContractError(f"{where}: {kind_of(value)} where an object with role and content is wanted")
    if not isinstance(message.get("role"), str):
        raise ContractError(f"{where} has no role")
    return {"content": None, **message}


def _as_mapping(value: object) -> Mapping[str, Any] | None:
    """Dicts as they are, and the message objects of the openai package, which are pydantic models."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else None
