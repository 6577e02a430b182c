"""Chats as tokens and masks for a trainer, by the tokenizer's own chat template.

A mask is -100 where the trainer must not train and the token's id where it shall. Where a turn begins and ends is found
by comparing token ids, never by counting: a generation prompt can be longer than what the turn then starts with
(templates that put an empty `<think>` block there), and a template can render a turn differently once others follow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from atropos_tui.errors import ContractError
from atropos_tui.runtime.group_shapes import NOT_TRAINED
from atropos_tui.runtime.plain_values import plain_ints, plain_list

TRAINED_ROLES = ("assistant", "agent")

Message = Mapping[str, Any]


def tokenize_for_trainer(
    tokenizer: Any,
    chat: Sequence[Message],
    include_messages: bool = False,
    train_on_all_assistant_turns: bool = False,
    finish_reason: str = "",
) -> dict[str, Any]:
    """Tokens and masks of a chat, lists of one length; with `include_messages` the chat as `messages` as well.

    Trains on the last message, or on every turn of an assistant or agent. With `finish_reason` "length" the last turn
    was cut, so the end-of-turn tokens that the template adds are left out: the model never sampled them.
    Raises ContractError, naming the template, when that leaves nothing to train on.
    """
    template = ChatTemplate(tokenizer)
    messages = list(chat)
    if not messages:
        raise ContractError("tokenize_for_trainer got an empty chat", "pass at least the assistant's message")
    tokens = template.ids(messages)
    masks = [NOT_TRAINED] * len(tokens)
    trained = [len(messages) - 1]
    if train_on_all_assistant_turns:
        trained = [index for index, message in enumerate(messages) if message.get("role") in TRAINED_ROLES]
    for index in trained:
        begin, end = turn_span(template, messages, tokens, index)
        masks[begin:end] = tokens[begin:end]
    if finish_reason == "length":
        kept = length_without_end_of_turn(template, messages, tokens)
        tokens, masks = tokens[:kept], masks[:kept]
    if masks.count(NOT_TRAINED) == len(masks):
        raise ContractError(
            f"the chat template of {template.name} leaves no token to train on in a chat of {len(messages)} messages",
            "check the roles and contents of the chat, or set another tokenizer.chat_template",
        )
    return {"tokens": tokens, "masks": masks} | ({"messages": chat} if include_messages else {})


class ChatTemplate:
    """A tokenizer's chat template, giving plain token ids under any version of transformers."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__

    def ids(self, messages: list[Message], *, generation_prompt: bool = False) -> list[int]:
        """The ids of a chat. transformers 5 gives a BatchEncoding unless it is told not to."""
        encoded = self.tokenizer.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=generation_prompt, return_dict=False
        )
        if isinstance(encoded, Mapping):
            encoded = encoded["input_ids"]
        ids = plain_list(encoded, f"token ids from the chat template of {self.name}")
        if len(ids) == 1 and isinstance(ids[0], list):  # a batch of one chat
            (ids,) = ids
        return plain_ints(ids, f"token ids from the chat template of {self.name}")

    def ids_if_any(self, messages: list[Message], *, generation_prompt: bool = False) -> list[int] | None:
        """The ids of the beginning of a chat; None where it is empty or the template makes no sense of it."""
        if not messages:
            return None
        try:
            return self.ids(messages, generation_prompt=generation_prompt)
        except jinja2.TemplateError:
            return None


def turn_span(template: ChatTemplate, messages: list[Message], tokens: list[int], index: int) -> tuple[int, int]:
    """Where message `index` lies in the tokens of the whole chat, without the header that the prompt has already."""
    begin = _begin(template, messages, tokens, index)
    end = _end(template, messages, tokens, index)
    if begin is not None and end is not None:
        return begin, end
    varied = _span_by_variation(template, messages, tokens, index)
    return max(varied[0], begin or 0), varied[1] if end is None else end


def _begin(template: ChatTemplate, messages: list[Message], tokens: list[int], index: int) -> int | None:
    """Where the sampled part of message `index` begins.

    None if the template renders the messages before it differently inside the whole chat, so that they are no prefix.
    """
    before = messages[:index]
    prompt = template.ids_if_any(before, generation_prompt=True)
    if prompt is None:
        return None
    common = _common_prefix(tokens, prompt)
    if common == len(prompt):
        return common
    bare = template.ids_if_any(before)
    if bare is None or common < len(bare):
        return None
    # The header may name another role than the generation prompt does, as for an "agent": it is never trained on.
    return max(common, _content_span(template, messages, tokens, index)[0])


def _end(template: ChatTemplate, messages: list[Message], tokens: list[int], index: int) -> int | None:
    """Where message `index` ends; None if the template renders it differently now that others follow."""
    if index == len(messages) - 1:
        return len(tokens)
    so_far = template.ids_if_any(messages[: index + 1])
    return len(so_far) if so_far is not None and tokens[: len(so_far)] == so_far else None


def _span_by_variation(
    template: ChatTemplate, messages: list[Message], tokens: list[int], index: int
) -> tuple[int, int]:
    """The content of message `index` and the end-of-turn token behind it."""
    begin, end = _content_span(template, messages, tokens, index)
    special = getattr(template.tokenizer, "all_special_ids", None) or ()
    return begin, end + 1 if end < len(tokens) and tokens[end] in special else end


def _content_span(template: ChatTemplate, messages: list[Message], tokens: list[int], index: int) -> tuple[int, int]:
    """What changes in the tokens of the whole chat when nothing but the content of message `index` does."""
    content = messages[index].get("content")
    text = content.strip() if isinstance(content, str) else ""
    other = next(letter for letter in "xyz" if letter not in (text[:1], text[-1:]))
    varied = [*messages[:index], {"role": messages[index]["role"], "content": other}, *messages[index + 1 :]]
    variant = template.ids(varied)
    begin = _common_prefix(tokens, variant)
    common_end = _common_prefix(tokens[begin:][::-1], variant[begin:][::-1])
    return begin, len(tokens) - common_end


def _common_prefix(one: list[int], other: list[int]) -> int:
    """The length of the longest common prefix."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(index for index in range(shorter) if one[index] != other[index])


def length_without_end_of_turn(template: ChatTemplate, messages: list[Message], tokens: list[int]) -> int:
    """How many tokens there are before those that the template puts after the last message's content."""
    _, end = _content_span(template, messages, tokens, len(messages) - 1)
    return end - 1 if end and tokens[end - 1] == template.tokenizer.eos_token_id else end
