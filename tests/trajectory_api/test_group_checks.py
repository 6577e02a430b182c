"""The door for scored groups: what is refused, and that the answer names the field and the sequence."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.trajectory_api.exactness import is_exact
from atropos_tui.trajectory_api.request_errors import BadBodyError
from atropos_tui.trajectory_api.wire import ScoredData
from tests.trajectory_api.bodies import GROUP_KEYS, group, read_group
from tests.trajectory_api.conftest import Api

NAN, INF = math.nan, math.inf

REFUSED: list[tuple[dict[str, Any], list[Any], str]] = [
    ({"tokens": []}, ["tokens"], "at least one sequence"),
    ({"tokens": [[1, 2, 3], [1, "x", 3]]}, ["tokens", 1, 1], "tokens, sequence 1, position 1"),
    ({"tokens": [[1, 2, 3], None]}, ["tokens", 1], "tokens, sequence 1"),
    ({"tokens": [[1, 2, 3], [1.5, 2, 3]]}, ["tokens", 1, 0], "tokens, sequence 1, position 0"),
    ({"masks": [[1, 2, 3]]}, ["masks"], "masks has 1 entries for 2 sequences"),
    ({"masks": [[1, 2, 3], [1]]}, ["masks", 1], "masks of sequence 1 has 1 entries, its tokens 3"),
    ({"scores": [0.5]}, ["scores"], "scores has 1 entries for 2 sequences"),
    ({"scores": [0.5, NAN]}, ["scores", 1], "scores, sequence 1"),
    ({"scores": [INF, 0.5]}, ["scores", 0], "scores, sequence 0"),
    ({"scores": [None, 0.5]}, ["scores", 0], "scores, sequence 0"),
    ({"inference_logprobs": [[1.0, -0.1, NAN], [1.0, -0.1, -0.2]]}, ["inference_logprobs", 0, 2], "position 2"),
    ({"inference_logprobs": [[1.0, -0.1, -0.2], [1.0]]}, ["inference_logprobs", 1], "of sequence 1 has 1 entries"),
    ({"ref_logprobs": [[1.0, -0.1, -0.2]]}, ["ref_logprobs"], "ref_logprobs has 1 entries"),
    ({"advantages": [[1.0] * 3, [1.0] * 4]}, ["advantages", 1], "advantages of sequence 1 has 4 entries"),
    ({"messages": [[{"role": "user", "content": ""}]]}, ["messages"], "messages has 1 entries"),
    ({"messages": [[], [{"role": "user"}]]}, ["messages", 1, 0], "must have 'role' and 'content'"),
    ({"messages": [[], [{"role": "u", "content": "", "reward": NAN}]]}, ["messages", 1, 0, "reward"], "nan"),
    ({"generation_params": {"temperature": [NAN]}}, ["generation_params", "temperature", 0], "temperature.0"),
    ({"generation_params": 1}, ["generation_params"], "an object"),
    ({"overrides": [{}]}, ["overrides"], "overrides has 1 entries"),
    ({"overrides": [{}, 1]}, ["overrides", 1], "overrides, sequence 1"),
    ({"images": INF}, ["images"], "inf"),
    ({"env_id": "x"}, ["env_id"], "env_id"),
    ({"distill_token_ids": [[[1]]]}, ["distill_token_ids"], "distill_token_ids has 1 entries"),
    ({"distill_logprobs": [[[1.0]], [[NAN]]]}, ["distill_logprobs", 1, 0, 0], "distill_logprobs, sequence 1"),
]


@pytest.mark.parametrize(("fault", "place", "says"), REFUSED, ids=[str(fault)[:60] for fault, _, _ in REFUSED])
async def test_a_wrong_group_is_refused_by_field_and_sequence(
    api: Api, fault: dict[str, Any], place: list[Any], says: str
) -> None:
    await api.start_run()
    response = await api.post("/scored_data", content=json.dumps({**group(2), **fault}))
    assert response.status_code == 422
    problem = response.json()["detail"][0]
    assert problem["loc"] == ["body", *place]
    assert says in problem["msg"]
    assert problem["type"]
    assert (await api.get("/status")).json()["queue_size"] == 0


@pytest.mark.parametrize("field", ["tokens", "masks", "scores"])
async def test_a_missing_field_is_named(api: Api, field: str) -> None:
    body = group()
    del body[field]
    response = await api.post("/scored_data", json=body)
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", field]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"[" * 5000, b'{"tokens": \xff}', b"\x00"])
async def test_what_is_no_group_at_all_is_refused(api: Api, body: bytes) -> None:
    for path in ("/scored_data", "/scored_data_list"):
        response = await api.post(path, content=body)
        assert response.status_code == (200 if (path, body) == ("/scored_data_list", b"[]") else 422)


async def test_numbers_that_no_reader_of_the_batch_could_hold_are_refused(api: Api) -> None:
    response = await api.post("/scored_data", json={**group(1), "tokens": [[1, 10**30, 2]]})
    assert response.status_code == 422
    assert "cannot be written as JSON" in response.json()["detail"][0]["msg"]


async def test_one_nan_does_not_spoil_the_groups_around_it(api: Api) -> None:
    """On upstream's server the NaN is accepted, and the batch it comes to is lost with an answer of 500."""
    await api.start_run(batch_size=8)
    for scores in ([0.0, 1.0, 2.0, 3.0], [NAN, 0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]):
        await api.post("/scored_data", content=json.dumps(group(4, scores=scores)))
    response = await api.get("/batch")
    assert response.status_code == 200
    assert [received["scores"][0] for received in response.json()["batch"]] == [0.0, 1.0]


async def test_a_group_larger_than_the_batch_is_refused_and_one_above_its_environments_size_is_taken(api: Api) -> None:
    await api.start_run(batch_size=8)
    env_id = await api.register_env(group_size=2)
    too_large = await api.post("/scored_data", json=group(9, env_id=env_id))
    assert too_large.status_code == 422
    assert "9 sequences is larger than the batch_size 8" in too_large.json()["detail"]
    assert (await api.post("/scored_data", json=group(8, env_id=env_id))).json() == {"status": "received"}
    assert (await api.get("/batch")).json()["batch"] is not None


async def test_many_faults_are_not_all_listed(api: Api) -> None:
    response = await api.post("/scored_data", content=json.dumps(group(200, scores=[NAN] * 200)))
    assert len(response.json()["detail"]) == 20


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize(
    "field",
    [
        lambda deep: {"generation_params": {"x": deep}},
        lambda deep: {"group_overrides": {"x": deep}},
        lambda deep: {"images": deep},
        lambda deep: {"overrides": [{"x": deep}, {}]},
        lambda deep: {"messages": [[], [{"role": "user", "content": "", "x": deep}]]},
    ],
)
async def test_values_nested_deeper_than_trainers_can_read_are_refused(api: Api, field: Any) -> None:
    """Python's parser ends at about a thousand levels, with an error that costs the whole batch."""
    refused = await api.post("/scored_data", json={**group(2), **field(nested(900))})
    assert refused.status_code == 422
    assert "recursion limit" in refused.json()["detail"][0]["msg"]
    assert (await api.post("/scored_data", json={**group(2), **field(nested(50))})).status_code == 200


def test_objects_alone_nested_deeply_are_not_taken_for_plain_either() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    with pytest.raises(BadBodyError):
        read_group(json.dumps(group(1))[:-1].encode() + b',"generation_params":' + deep + b"}")


@pytest.mark.parametrize("scores", [[1e200, -1e200], [1e308, 1e308], [-1.7e308, 1.7e308]])
async def test_scores_whose_squares_no_float_holds_are_taken_and_summed_up(api: Api, scores: list[float]) -> None:
    assert (await api.post("/scored_data", json=group(2, scores=scores))).status_code == 200
    (view,) = (await api.get("/inspect/groups")).json()["groups"]
    spread = (scores[1] / 2 - scores[0] / 2) if scores[0] != scores[1] else 0.0
    assert view["score_mean"] == pytest.approx(scores[0] / 2 + scores[1] / 2)
    assert view["score_spread"] == pytest.approx(abs(spread))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40_000) | st.floats(width=32) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner),
    max_leaves=6,
)
NUMBERS = st.integers(-100, 40_000) | st.floats(-5, 5, width=32)
ROWS = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=2, max_size=2)
MOSTLY_RIGHT = st.fixed_dictionaries(
    {"tokens": ROWS, "masks": ROWS, "scores": st.lists(NUMBERS, min_size=2, max_size=2)},
    optional=dict.fromkeys(sorted(GROUP_KEYS - {"tokens", "masks", "scores"}), ROWS | JSON),
)


@given(MOSTLY_RIGHT)
def test_the_short_proof_and_the_long_way_agree(data: dict[str, Any]) -> None:
    """Whatever is taken comes out as the pydantic model has it; whatever is exact needs no converting."""
    body = json.dumps(data).encode()
    try:
        (taken,) = read_group(body)
    except BadBodyError:
        assert not is_exact(data)
        return
    out = json.loads(taken.json.text())
    assert set(out) == GROUP_KEYS
    assert out == ScoredData.model_validate_json(body).model_dump()
    assert taken.sequences == len(out["tokens"])
    assert taken.tokens == sum(map(len, out["tokens"]))
