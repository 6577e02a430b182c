"""Keeping the history of long episodes short: thinking that is cut or removed, old turns that are dropped."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from atropos_tui.errors import ContractError
from atropos_tui.runtime.tokens import tokenize_for_trainer

logger = logging.getLogger(__name__)

THINK, END_THINK = "<think>", "</think>"
NEEDED_FIELDS = ("messages", "tokens", "masks", "seed", "parsed_actions")

Step = Mapping[str, Any]


def strip_thinking(response_text: str) -> str:
    """The text without its first `<think>` block; unchanged when it has no whole one."""
    begin, end = response_text.find(THINK), response_text.find(END_THINK)
    if begin == -1 or end == -1:
        return response_text
    return response_text[:begin] + response_text[end + len(END_THINK) :]


def truncate_thinking(response_text: str, tokenizer: Any, max_think_tokens: int) -> str:
    """The text with the first `<think>` block cut to `max_think_tokens`, keeping its end.

    The last paragraph alone is kept if it fits; what was cut begins with "... ". Unchanged without a whole block.
    """
    begin, end = response_text.find(THINK), response_text.find(END_THINK)
    if begin == -1 or end < begin:
        return response_text
    opening, closing = response_text[: begin + len(THINK)].rstrip(), response_text[end:].lstrip()
    thinking = _cut(response_text[begin + len(THINK) : end].strip(), tokenizer, max_think_tokens)
    return f"{opening}\n{thinking}\n{closing}" if thinking else f"{opening}{closing}"


def _cut(thinking: str, tokenizer: Any, limit: int) -> str:
    tokens = tokenizer.encode(thinking, add_special_tokens=False)
    if len(tokens) <= limit:
        return thinking
    last_paragraph = thinking.rsplit("\n\n", 1)[-1].strip()
    if last_paragraph != thinking and len(tokenizer.encode(last_paragraph, add_special_tokens=False)) <= limit:
        kept = last_paragraph
    else:
        kept = tokenizer.decode(tokens[max(0, len(tokens) - limit) :], skip_special_tokens=True).strip()
    return f"... {kept}" if kept else ""


def ensure_trajectory_token_limit(
    trajectory: Sequence[Step], tokenizer: Any, max_trajectory_tokens: int
) -> list[dict[str, Any] | Step]:
    """The steps of an episode whose alternatives all fit into `max_trajectory_tokens`.

    A step that is too long loses its oldest messages, in pairs of environment and agent where they come so. The first
    message, the last reply and the observation before it stay; a step that does not fit even so is left out, as is
    one without messages, tokens, masks, seed or parsed actions.
    """
    kept: list[dict[str, Any] | Step] = []
    for number, step in enumerate(trajectory):
        if not _is_complete(step):
            logger.warning(
                "step %d of the trajectory is left out: it lacks one of %s", number, ", ".join(NEEDED_FIELDS)
            )
        elif max(map(len, step["tokens"])) <= max_trajectory_tokens:
            kept.append(step)
        elif shortened := _shortened(step, tokenizer, max_trajectory_tokens):
            kept.append(shortened)
        else:
            logger.warning("step %d of the trajectory is left out: over %d tokens", number, max_trajectory_tokens)
    return kept


def _is_complete(step: Step) -> bool:
    if step.get("seed") is None or step.get("parsed_actions") is None:
        return False
    return all(step.get(field) for field in ("messages", "tokens", "masks"))


def _shortened(step: Step, tokenizer: Any, limit: int) -> dict[str, Any] | None:
    """The step without its oldest messages; None when it does not fit even with as few as may be left."""
    alternatives = [list(messages) for messages in step["messages"]]
    while droppable := [count for count in map(_droppable, alternatives) if count]:
        count = min(droppable)
        for messages in alternatives:
            if _droppable(messages):
                del messages[1 : 1 + count]
        try:
            tokenized = [tokenize_for_trainer(tokenizer, messages) for messages in alternatives]
        except (ContractError, jinja2.TemplateError) as error:
            logger.warning("a shortened trajectory cannot be tokenized: %s", error)
            return None
        if max(len(alternative["tokens"]) for alternative in tokenized) <= limit:
            return {
                **step,
                "messages": alternatives,
                "tokens": [alternative["tokens"] for alternative in tokenized],
                "masks": [alternative["masks"] for alternative in tokenized],
            }
    return None


def _droppable(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many of the oldest messages behind the first may go at once: a pair of turns, one message, or none."""
    roles = [message["role"] for message in messages]
    kept_at_end = 0
    if len(roles) > 1 and roles[-1] in ("agent", "assistant"):
        kept_at_end = 2 if len(roles) > 2 and roles[-2] == "environment" else 1
    free = len(roles) - 1 - kept_at_end
    if free >= 2 and roles[1] == "environment" and roles[2] in ("agent", "assistant"):
        return 2
    return 1 if free > 0 else 0
