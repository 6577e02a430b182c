"""Answers of `/generate`: read quickly or slowly, they say the same."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.inference.failures import RequestError
from atropos_tui.inference.generated import read_generated

URL = "http://server/generate"
IDS = st.one_of(st.integers(0, 2**32).map(str), st.sampled_from(["007", "-1", "1.0", "1e3", "", " 5", "x", '"', "1,2"]))
LOGPROBS = st.one_of(st.floats(-100, 0), st.sampled_from([0, -1, None, "-0.5", True, [], {}]))
POSITIONS = st.lists(st.dictionaries(IDS, LOGPROBS, max_size=2), max_size=2)
ORDINARY = st.lists(st.tuples(st.integers(0, 2**32), st.floats(-100, 0)), max_size=6)


def answer(*choices: Any, indent: int | None = None) -> bytes:
    told = {"logprobs": choices, "finish_reasons": ["stop"] * len(choices), "text": ["…"] * len(choices)}
    return json.dumps(told, indent=indent).encode()


def as_objects(choice: list[list[dict[str, Any]]]) -> tuple[list[int], list[Any]]:
    first = [next(iter(position[0].items())) for position in choice]
    return [int(token) for token, _ in first], [logprob for _, logprob in first]


@given(st.lists(ORDINARY, max_size=3), st.sampled_from([None, 1]))
def test_ids_and_logprobs_are_those_of_each_position(
    choices: list[list[tuple[int, float]]], indent: int | None
) -> None:
    body = answer(*([[{str(token): logprob}] for token, logprob in choice] for choice in choices), indent=indent)
    assert read_generated(URL, body).sampled() == [
        ([token for token, _ in choice], [logprob for _, logprob in choice]) for choice in choices
    ]


@given(st.lists(POSITIONS, max_size=3))
def test_whatever_is_no_plain_pair_is_read_as_the_objects_say(choice: list[list[dict[str, Any]]]) -> None:
    body = answer(choice)
    try:
        wanted = as_objects(choice)
    except (IndexError, StopIteration, ValueError):
        with pytest.raises((IndexError, StopIteration, ValueError)):
            read_generated(URL, body).sampled()
    else:
        assert read_generated(URL, body).sampled() == [wanted]


def test_of_several_ids_at_a_position_the_first_counts() -> None:
    body = answer([[{"5": -0.5, "6": -1.0}], [{"7": -0.25}, {"8": -2.0}]])
    assert read_generated(URL, body).sampled() == [([5, 7], [-0.5, -0.25])]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"logprobs": [', "broken JSON"),
        (b'{"logprobs": null, "finish_reasons": []}', "without logprobs as vLLM gives them"),
        (b'{"finish_reasons": []}', "without logprobs as vLLM gives them"),
        (b"[]", "without logprobs as vLLM gives them"),
    ],
)
def test_an_answer_of_another_form_is_refused_in_words(body: bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_generated(URL, body)


def test_what_comes_beside_is_read() -> None:
    told = {"logprobs": [], "finish_reasons": [], "weight_version": "v3", "token_ids": [[1]], "prompt_token_ids": [2]}
    read = read_generated(URL, orjson.dumps(told))
    assert (read.weight_version, read.token_ids, read.prompt_token_ids) == ("v3", [[1]], [2])
