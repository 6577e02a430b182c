"""Chats as prompt text: the chat template, and how a reply that was sampled goes into the prompt of the next turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from atropos_tui.errors import ContractError
from atropos_tui.inference.sequence import Turn
from atropos_tui.inference.tool_calls import as_text, for_template, same_calls

# Stands in for a reply while the template is rendered, to find out what the template puts after it. Plain letters, so
# that no template trims, strips or escapes it.
REPLY_MARK = "theReplyGoesHere"
THINK_MARKS = {"<think>": "THINKopenMARK", "</think>": "THINKcloseMARK"}

Message = Mapping[str, Any]


def plain_messages(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Messages as dicts; those of the `openai` package are accepted too."""
    return [
        dict(message) if isinstance(message, Mapping) else message.model_dump(exclude_none=True) for message in messages
    ]


def begins_with(messages: Sequence[Message], beginning: Sequence[Message]) -> bool:
    """Whether a chat goes on from another one: the same messages, as far as a model sees them."""
    return 0 < len(beginning) <= len(messages) and all(map(_same, messages, beginning))


class ChatTemplate:
    """A tokenizer's chat template. `preserve_think_blocks`: thinking stays in earlier replies even where the template
    strips it."""

    def __init__(self, tokenizer: Any, preserve_think_blocks: bool, writes_tool_calls: bool) -> None:
        self._tokenizer = tokenizer
        self._preserve_think_blocks = preserve_think_blocks
        self._writes_tool_calls = writes_tool_calls

    def render(self, messages: Sequence[Message], tools: Sequence[Any] | None = None) -> str:
        """The prompt text. It ends with the opening of a reply, unless the last message is one."""
        shielded = [self._shielded(self._without_calls(message)) for message in messages]
        text = self._apply(shielded, tools)
        for mark, original in ((mark, original) for original, mark in THINK_MARKS.items()):
            text = text.replace(mark, original)
        return text

    def continued(
        self, full_text: str, turn: Turn, messages: Sequence[Message], tools: Sequence[Any] | None = None
    ) -> str | None:
        """The prompt text of a chat that goes on from `turn`: the sequence as it was sampled, then what the template
        puts after the reply. None when the template would not have the reply there as it was."""
        if not self._preserve_think_blocks and not self._keeps_replies(messages, tools):
            return None
        reply = len(turn.messages) - 1
        marked = [*messages[:reply], {"role": "assistant", "content": REPLY_MARK}, *messages[reply + 1 :]]
        _, found, after = self.render(marked, tools).rpartition(REPLY_MARK)
        return full_text + without_end_of_turn(after, turn.end_of_turn) if found else None

    def _keeps_replies(self, messages: Sequence[Message], tools: Sequence[Any] | None) -> bool:
        text = self.render(messages, tools)
        return all(str(message.get("content") or "").strip() in text for message in messages if _thinks(message))

    def _without_calls(self, message: Message) -> Message:
        if not message.get("tool_calls"):
            return message
        return as_text(message) if self._writes_tool_calls else for_template(message)

    def _shielded(self, message: Message) -> Message:
        """Thinking hidden from the template, which would strip it from all but the last reply."""
        if not self._preserve_think_blocks or not _thinks(message):
            return message
        content = message["content"]
        for original, mark in THINK_MARKS.items():
            content = content.replace(original, mark)
        return {**message, "content": content}

    def _apply(self, messages: Sequence[Message], tools: Sequence[Any] | None) -> str:
        options: dict[str, Any] = {"tools": tools} if tools else {}
        opening = not messages or messages[-1].get("role") != "assistant"
        if getattr(self._tokenizer, "chat_template", "unknown") is None:
            raise ContractError(
                "the tokenizer has no chat template", "set tokenizer.chat_template, or use completion() with a prompt"
            )
        rendered: str = self._tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=opening, **options
        )
        return rendered


def without_end_of_turn(after: str, sampled_end: str) -> str:
    """What follows a reply, less the end of turn that the model has sampled already."""
    if sampled_end and after.lstrip().startswith(sampled_end):
        return after.lstrip()[len(sampled_end) :]
    return after


def _same(sent: Message, known: Message) -> bool:
    """Whether a message is one that is known. Tool calls have ids of their own, so that their text may be left out."""
    content, calls = sent.get("content") or "", sent.get("tool_calls")
    return (
        all(sent.get(name) == known.get(name) for name in ("role", "name", "tool_call_id"))
        and (content == (known.get("content") or "") or bool(calls and not content))
        and same_calls(calls, known.get("tool_calls"))
    )


def _thinks(message: Message) -> bool:
    content = message.get("content")
    return message.get("role") == "assistant" and isinstance(content, str) and "think>" in content
