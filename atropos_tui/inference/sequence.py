"""Tracked sequences: tokens, mask and logprobs of a prompt and what was sampled after it, always aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, PrivateAttr

from atropos_tui.errors import InferenceError

MASKED = -100
NOT_SAMPLED = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """How the caller saw a sequence: `text` without special tokens, of which the first `prompt_length` characters are
    the prompt; the `end_of_turn` that the model sampled, such as `<|im_end|>`, empty when it was cut off; and the
    `messages` of a chat with the reply as the last."""

    text: str
    prompt_length: int
    end_of_turn: str
    messages: tuple[Mapping[str, Any], ...] = ()


class SequenceNode(BaseModel):
    """One sequence; the three lists have one entry a token.

    `full_text` is the decoded sequence with its special tokens. `masked_tokens` are the token ids where they were
    sampled and -100 elsewhere; `logprobs` are the server's where sampled and exactly 1.0 elsewhere (wire contract of
    the trajectory API). `metadata` has `finish_reason`, `weight_version` where the server tells it, and `partial` when
    the server broke generation off.
    """

    full_text: str
    tokens: list[int]
    masked_tokens: list[int]
    logprobs: list[float]
    metadata: dict[str, Any] | None = None
    _turn: Turn | None = PrivateAttr(default=None)

    @property
    def turn(self) -> Turn | None:
        return self._turn

    def seen_as(self, turn: Turn) -> SequenceNode:
        self._turn = turn
        return self


def grown(
    base: SequenceNode | None,
    prompt_tokens: Sequence[int],
    output_tokens: Sequence[int],
    output_logprobs: Sequence[float],
    *,
    full_text: str,
    metadata: dict[str, Any],
) -> SequenceNode:
    """The sequence of a prompt and its output. What `base` has sampled before stays trainable.

    The logprobs of the output are none above zero (see `check_logprobs`), so that the sentinel is where it is masked.
    Raises InferenceError when the prompt does not begin with the tokens of `base`, or the parts do not fit together.
    """
    prompt, output = list(prompt_tokens), list(output_tokens)
    mask_before = base.masked_tokens if base else []
    logprobs_before = base.logprobs if base else []
    if base is not None and prompt[: len(base.tokens)] != base.tokens:
        raise InferenceError("the prompt does not begin with the sequence that it continues", kind="misaligned")
    added = len(prompt) - len(mask_before)
    # Not validated again, which would copy every list.
    node = SequenceNode.model_construct(
        full_text=full_text,
        tokens=prompt + output,
        masked_tokens=[*mask_before, *[MASKED] * added, *output],
        logprobs=[*logprobs_before, *[NOT_SAMPLED] * added, *output_logprobs],
        metadata=metadata,
    )
    if not len(node.tokens) == len(node.masked_tokens) == len(node.logprobs):
        raise InferenceError(
            f"{len(node.tokens)} tokens, {len(node.masked_tokens)} mask entries and {len(node.logprobs)} logprobs",
            kind="misaligned",
        )
    return node
