"""The tokens of a rollout: what is known of each, and where to look first. Made for hundreds of thousands of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import ne

from atropos_tui.monitor.group_detail import RolloutDetail
from atropos_tui.ui.text_safety import visible

NOT_TRAINED = -100


@dataclass(frozen=True, slots=True)
class Token:
    """One token. None stands where the environment gave nothing, or the token was not sampled.

    `reference` is the logprob that a reference or teacher gives it.
    """

    index: int
    token_id: int
    text: str
    trained: bool
    logprob: float | None
    advantage: float | None
    reference: float | None = None

    @property
    def surprise(self) -> float | None:
        return None if self.logprob is None else max(0.0, -self.logprob)

    @property
    def difference(self) -> float | None:
        """How much more likely (nats) it was than under the reference."""
        return None if self.logprob is None or self.reference is None else self.logprob - self.reference


class Tokens(Sequence[Token]):
    """The tokens of a rollout. Lists of other lengths than the tokens' are not trusted."""

    def __init__(self, rollout: RolloutDetail) -> None:
        many = len(rollout.tokens)

        def aligned(values: Sequence[float]) -> Sequence[float] | None:
            return values if len(values) == many else None

        self.ids = rollout.tokens
        self._masks = rollout.masks if len(rollout.masks) == many else None
        self._logprobs = aligned(rollout.logprobs)
        self._advantages = aligned(rollout.advantages)
        self._reference = aligned(rollout.ref_logprobs)
        self._pieces = rollout.pieces if len(rollout.pieces) == many else None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Token:  # type: ignore[override]  # nobody slices it
        return Token(
            index=index,
            token_id=self.ids[index],
            text=self.texts[index],
            trained=self.is_trained(index),
            logprob=None if self._logprobs is None else _sampled(self._logprobs[index]),
            advantage=None if self._advantages is None else self._advantages[index],
            reference=None if self._reference is None else _sampled(self._reference[index]),
        )

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of each, made visible; a vocabulary has far fewer than a long rollout."""
        if self._pieces is None:
            return [f"‹{token}›" for token in self.ids]
        return [text or "‹›" for text in self.decoded]

    @cached_property
    def decoded(self) -> Sequence[str]:
        """As `texts`, but for tokens that have none of their own; all of them where nobody could decode them."""
        if self._pieces is None:
            return [""] * len(self)
        shown = {piece: visible(piece) for piece in set(self._pieces)}
        return [shown[piece] for piece in self._pieces]

    @cached_property
    def trained(self) -> int:
        """How many of them are trained on."""
        return len(self) if self._masks is None else len(self) - self._masks.count(NOT_TRAINED)

    @property
    def has_reference(self) -> bool:
        return self._reference is not None

    def is_trained(self, index: int) -> bool:
        return self._masks is None or self._masks[index] != NOT_TRAINED

    @cached_property
    def first_trained(self) -> int:
        """The first that is trained on, 0 if none is."""
        return next((index for index in range(len(self)) if self.is_trained(index)), 0)

    @cached_property
    def least_likely(self) -> list[int]:
        """The numbers of the trained tokens, the least likely first."""
        if self._logprobs is None:
            return []
        sampled = [(p, index) for index, p in enumerate(self._logprobs) if self.is_trained(index) and p <= 0]
        return [index for _, index in sorted(sampled)]

    @cached_property
    def mask_edges(self) -> list[int]:
        """The numbers of the tokens before which the mask changes."""
        return [index for index in range(1, len(self)) if self.is_trained(index) != self.is_trained(index - 1)]

    @cached_property
    def mean_difference(self) -> float | None:
        """The mean over trained tokens of how much more likely (nats) they were than under the reference.

        On tokens that the policy sampled this estimates KL(policy ‖ reference) per token. None without a reference.
        """
        if self._logprobs is None or self._reference is None:
            return None
        both = enumerate(zip(self._logprobs, self._reference, strict=True))
        # Logprobs above zero are placeholders.
        differences = [p - q for index, (p, q) in both if p <= 0 and q <= 0 and self.is_trained(index)]
        finite = [difference for difference in differences if math.isfinite(difference)]
        return sum(finite) / len(finite) if finite else None


def first_difference(one: Tokens, other: Tokens) -> int:
    """The number of the first token in which two rollouts differ."""
    differing = map(ne, one.ids, other.ids)
    shorter = min(len(one), len(other))
    return next((index for index, differs in enumerate(differing) if differs), max(0, shorter - 1))


def _sampled(logprob: float) -> float | None:
    """Logprobs above zero are placeholders, not probabilities."""
    return None if logprob > 0 or math.isnan(logprob) else logprob
