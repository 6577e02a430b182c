"""Scored groups as environments make them, for the tests of what happens to them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st


def scored_group(scores: list[Any] | None = None, length: int = 6, prompt: int = 2, **fields: Any) -> dict[str, Any]:
    """A well-formed group with one sequence a score, of `length` tokens of which `prompt` are not trained on."""
    scores = [0.0, 1.0] if scores is None else scores
    tokens = [[100 * index + position for position in range(length)] for index in range(len(scores))]
    return {
        "tokens": tokens,
        "masks": [[-100] * prompt + sequence[prompt:] for sequence in tokens],
        "scores": scores,
        **fields,
    }


class Scalar:
    """Converts like a tensor of one entry: by `item()` and by nothing else."""

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        return self._value


class Tensor:
    """Converts like a tensor: by `tolist()`; `item()` is for one entry only."""

    def __init__(self, value: list[Any]) -> None:
        self._value = value
        self.ndim = 1

    def __len__(self) -> int:
        return len(self._value)

    def tolist(self) -> list[Any]:
        return self._value

    def item(self) -> Any:
        raise RuntimeError("a Tensor with several elements cannot be converted to Scalar")


# On a busy machine the time an example takes says nothing.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

finite = st.floats(-1e6, 1e6)
texts = st.text("aé€😀\n\x1b\0", max_size=5)


@st.composite
def well_formed_groups(draw: st.DrawFn) -> dict[str, Any]:
    """Groups of every size and with any of the optional fields, all lists plain."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))

    def per_token(values: st.SearchStrategy[Any]) -> list[list[Any]]:
        return [draw(st.lists(values, min_size=length, max_size=length)) for length in lengths]

    tokens = per_token(st.integers(0, 2**32 - 1))
    trained = per_token(st.booleans())
    group: dict[str, Any] = {
        "tokens": tokens,
        "masks": [
            [token if train else -100 for token, train in zip(*pair, strict=True)]
            for pair in zip(tokens, trained, strict=True)
        ],
        "scores": draw(st.lists(finite, min_size=len(lengths), max_size=len(lengths))),
    }
    for field in ("advantages", "ref_logprobs", "inference_logprobs"):
        if draw(st.booleans()):
            group[field] = per_token(finite)
    if draw(st.booleans()):
        group["overrides"] = [draw(st.dictionaries(texts, finite, max_size=2)) for _ in lengths]
    if draw(st.booleans()):
        group["messages"] = [[{"role": "user", "content": draw(texts)}] for _ in lengths]
    if draw(st.booleans()):
        top = draw(st.integers(1, 3))
        group["distill_token_ids"] = [[list(range(top)) for _ in range(length)] for length in lengths]
        group["distill_logprobs"] = [[[-0.5] * top for _ in range(length)] for length in lengths]
    return group


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
