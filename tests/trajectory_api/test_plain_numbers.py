"""The quickest proof takes only what the slow ways would take as it is."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.trajectory_api import plain_numbers
from atropos_tui.trajectory_api.exactness import is_exact
from atropos_tui.trajectory_api.plain_numbers import plain_group
from atropos_tui.trajectory_api.wire import ScoredData
from tests.trajectory_api.bodies import group, read_group

pytest.importorskip("simdjson")

LOGPROBS = [[1.0, -0.5, -1]] * 2
FULL = group(2, inference_logprobs=LOGPROBS, advantages=LOGPROBS, ref_logprobs=None, messages=None, images=None,
             generation_params={"temperature": 1.0}, group_overrides={}, env_id=3)  # fmt: skip
ENTRIES = st.sampled_from([0, 7, -100, 1.5, True, None, "1", [], [5], [1, 2], {}, 10**30, 2**63, 2**64 - 1])
ROWS = st.lists(ENTRIES, min_size=2, max_size=3) | ENTRIES
ANYTHING = st.lists(ROWS, min_size=2, max_size=2) | ENTRIES


@given(
    changes=st.dictionaries(st.sampled_from(sorted(ScoredData.model_fields)), ANYTHING, max_size=2),
    missing=st.sets(st.sampled_from(sorted(FULL)), max_size=2),
    text=st.sampled_from(["{}", " {}", "{}\n", "\ufeff{}", "{},", "{}{{}}"]),
)
def test_a_plain_group_is_exact(changes: dict[str, Any], missing: set[str], text: str) -> None:
    data = {name: value for name, value in (FULL | changes).items() if name not in missing}
    body = text.format(json.dumps(data)).encode()
    found = plain_group(body)
    if found is None:
        return
    assert is_exact(orjson.loads(body))
    read = ScoredData.model_validate_json(body)
    assert (found.sequences, found.tokens) == (len(read.tokens), sum(map(len, read.tokens)))
    assert (found.scores, found.env_id, found.keys) == (read.scores, read.env_id, frozenset(data))


@pytest.mark.parametrize("data", [FULL, group(3), {**group(1), "scores": [1]}], ids=["full", "short", "whole score"])
@pytest.mark.parametrize("indent", [None, 2])
def test_groups_of_numbers_are_plain(data: dict[str, Any], indent: int | None) -> None:
    body = json.dumps(data, indent=indent).encode()
    assert plain_group(body) is not None
    (taken,) = read_group(body)
    assert json.loads(taken.json.text()).items() >= data.items()


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": [[[1], 2, 3], [1, 2, 3]]}, {"tokens": [[1, 2, True], [1, 2, 3]]}, {"tokens": [[1, 2.0], [1, 2]]},
        {"masks": [[1, 2], [1, 2, 3]]}, {"masks": [[1, 2, 3]]}, {"scores": [1.0, None]}, {"scores": [True, 1.0]},
        {"scores": [1.0]}, {"env_id": True}, {"env_id": 1.0}, {"advantages": []}, {"generation_params": "x"},
        {"generation_params": {"stop": ["x"]}}, {"messages": []}, {"unknown": 1}, {"ref_logprobs": [["1", 2, 3]] * 2},
    ],
    ids=str,
)  # fmt: skip
def test_all_else_goes_the_longer_ways(change: dict[str, Any]) -> None:
    assert plain_group(json.dumps({**FULL, **change}).encode()) is None


def test_a_key_that_comes_twice_is_left_to_the_longer_ways() -> None:
    assert plain_group(json.dumps(FULL)[:-1].encode() + b',"env_id":4}') is None


def test_without_simdjson_groups_are_taken_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(FULL).encode()
    (quickly,) = read_group(body)
    monkeypatch.setattr(plain_numbers, "simdjson", None)
    (slowly,) = read_group(body)
    assert slowly.json.text() == quickly.json.text()
    assert (slowly.scores, slowly.tokens, slowly.env_id) == (quickly.scores, quickly.tokens, quickly.env_id)
