"""What the runtime's filter lets through to the trainer, what it keeps, and how it says why."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atropos_tui.ledger.outcomes import ScoreSplit, SkipReason
from atropos_tui.runtime.checks import CheckedGroup, GroupChecks, Rejection
from atropos_tui.runtime.encoding import encode_group
from tests.runtime.scored_groups import Scalar, Tensor, anything, scored_group, unhurried, well_formed_groups

WIRE_FIELDS = {
    "tokens", "masks", "scores", "advantages", "ref_logprobs", "inference_logprobs", "messages", "generation_params",
    "overrides", "group_overrides", "images", "distill_token_ids", "distill_logprobs",
}  # fmt: skip


def check(group: object, checks: GroupChecks | None = None, **options: Any) -> CheckedGroup | Rejection:
    if checks is None:
        checks = GroupChecks(len(group["scores"]) if isinstance(group, dict) and "scores" in group else 2)
    return checks.check(group, **{"group_id": 7, "item": "an item", "max_token_len": -1} | options)


def accepted(group: object, checks: GroupChecks | None = None, **options: Any) -> CheckedGroup:
    result = check(group, checks, **options)
    assert isinstance(result, CheckedGroup), result
    return result


def kept_back(group: object, checks: GroupChecks | None = None, **options: Any) -> Rejection:
    result = check(group, checks, **options)
    assert isinstance(result, Rejection), result
    return result


class TestWhatGoesToTheTrainer:
    def test_the_body_has_every_field_of_the_wire_and_null_for_what_is_absent(self) -> None:
        body = accepted(scored_group()).body
        assert set(body) == WIRE_FIELDS
        assert [field for field in WIRE_FIELDS if body[field] is not None] != WIRE_FIELDS
        assert all(body[field] is None for field in WIRE_FIELDS - {"tokens", "masks", "scores"})

    def test_empty_lists_stand_for_absent_fields(self) -> None:
        empty = {
            "advantages": np.array([]),
            "ref_logprobs": [],
            "overrides": [],
            "images": [],
            "messages": [],
            "distill_logprobs": [],
        }
        body = accepted(scored_group(**empty)).body
        assert {body[field] for field in empty} == {None}

    def test_a_field_that_is_none_for_every_sequence_is_absent(self) -> None:
        nothing = {"inference_logprobs": [None, None], "overrides": [None, None], "messages": [None, None]}
        body = accepted(scored_group(**nothing)).body
        assert {body[field] for field in nothing} == {None}

    def test_further_keys_of_the_environment_stay_off_the_wire(self) -> None:
        assert set(accepted(scored_group(seed=5, parsed_actions=[1, 2])).body) == WIRE_FIELDS

    def test_group_overrides_of_none_are_as_good_as_none_at_all(self) -> None:
        assert accepted(scored_group(group_overrides=None)).body["group_overrides"] is None

    def test_the_body_is_out_of_the_environments_reach(self) -> None:
        group = scored_group(messages=[[{"role": "user", "content": "a"}]] * 2)
        body = accepted(group).body
        group["tokens"][0].append(1)
        group["masks"][0].clear()
        group["scores"][0] = math.nan
        group["messages"][0].clear()
        assert (len(body["tokens"][0]), len(body["masks"][0]), body["scores"][0]) == (6, 6, 0.0)
        assert body["messages"][0] == [{"role": "user", "content": "a"}]

    def test_content_and_figures_go_along_for_whoever_watches(self) -> None:
        group = scored_group(
            inference_logprobs=[[1.0, 1.0, -0.1, -0.2, -0.3, -0.4]] * 2,
            finish_reasons=["stop", "length"],
            score_parts=[{"exact": 1, "format": np.float32(0.5)}, None],
        )
        result = accepted(group)
        assert result.scores == (0.0, 1.0)
        assert result.completion_tokens == (4, 4)
        assert result.truncated == 1
        assert (result.content.group_id, result.content.item) == (7, "an item")
        first, second = result.content.rollouts
        assert first.parts == {"exact": 1.0, "format": 0.5}
        assert (second.finish_reason, second.parts) == ("length", {})
        assert list(second.logprobs)[:3] == pytest.approx([1.0, 1.0, -0.1])

    @unhurried
    @given(group=well_formed_groups())
    def test_every_well_formed_group_is_judged_by_its_scores_and_masks_alone(self, group: dict[str, Any]) -> None:
        result = check(group)
        trainable = any(value != -100 for mask in group["masks"] for value in mask)
        if not trainable:
            assert isinstance(result, Rejection)
            assert result.reason is SkipReason.NO_TRAINABLE_TOKENS
        elif isinstance(result, Rejection):
            assert result.reason is SkipReason.IDENTICAL_SCORES
            assert len(group["scores"]) > 1
            assert max(group["scores"]) - min(group["scores"]) <= 1e-3
        else:
            sent = json.loads(encode_group(result.body).json)
            assert {field: sent[field] for field in group} == group

    @unhurried
    @given(group=well_formed_groups(), into=st.sampled_from(["numpy", "tuples", "tensors", "scalars"]))
    def test_arrays_tensors_and_their_scalars_become_plain_numbers(self, group: dict[str, Any], into: str) -> None:
        plain = check(group)
        converted = check(
            {**group, **{field: _converted(group[field], into) for field in ("tokens", "masks", "scores")}}
        )
        assert type(plain) is type(converted)
        if isinstance(plain, CheckedGroup) and isinstance(converted, CheckedGroup):
            assert plain.body == converted.body
            numbers = [number for row in converted.body["tokens"] + converted.body["masks"] for number in row]
            assert {type(number) for number in numbers} == {int}
            assert {type(score) for score in converted.body["scores"]} == {float}

    def test_whole_floats_and_bools_become_the_numbers_they_stand_for(self) -> None:
        group = {"tokens": [[1.0, 2.0], [3, 4]], "masks": [[-100, 2.0], [-100, 4]], "scores": [True, np.bool_(False)]}
        body = accepted(group).body
        assert body["tokens"] == [[1, 2], [3, 4]]
        assert body["scores"] == [1.0, 0.0]

    def test_one_advantage_for_a_sequence_stands_for_each_of_its_tokens(self) -> None:
        body = accepted(scored_group(advantages=[1, np.float32(-0.5)], length=3)).body
        assert body["advantages"] == [[1.0] * 3, [-0.5] * 3]

    def test_overrides_may_be_missing_for_single_sequences(self) -> None:
        body = accepted(scored_group(overrides=[{"set_advantage_to_zero": True}, None])).body
        assert body["overrides"] == [{"set_advantage_to_zero": True}, {}]


class TestMessages:
    def test_messages_keep_all_their_keys(self) -> None:
        conversation = [{"role": "user", "content": "q", "reward": 1.0}, {"role": "tool", "content": "r", "name": "t"}]
        assert accepted(scored_group(messages=[conversation, ()])).body["messages"] == [conversation, []]

    def test_a_tool_call_without_content_gets_null(self) -> None:
        call = {"role": "assistant", "tool_calls": [{"id": "1"}]}
        (message,) = accepted(scored_group(messages=[[call], []])).body["messages"][0]
        assert message == {**call, "content": None}

    def test_message_objects_of_the_openai_package_are_understood(self) -> None:
        from openai.types.chat import ChatCompletionMessage

        message = ChatCompletionMessage(role="assistant", content="hi")
        (sent,) = accepted(scored_group(messages=[[message], []])).body["messages"][0]
        assert sent == {"role": "assistant", "content": "hi"}

    def test_a_text_in_place_of_a_conversation_is_one_user_message(self) -> None:
        assert accepted(scored_group(messages=["all of it", ""])).body["messages"][0] == [
            {"role": "user", "content": "all of it"}
        ]

    @pytest.mark.parametrize(
        ("messages", "detail"),
        [
            ([[{"content": "x"}], []], "messages of sequence 0, message 0 has no role"),
            ([[], [7]], "messages of sequence 1, message 0: an int"),
            ([3, []], "messages of sequence 0: an int"),
            ("text", "messages: a str"),
        ],
    )
    def test_what_is_no_message_is_named(self, messages: object, detail: str) -> None:
        result = kept_back(scored_group(messages=messages))
        assert result.reason is SkipReason.MALFORMED
        assert detail in result.detail


class TestMalformedGroups:
    @pytest.mark.parametrize(
        ("change", "detail"),
        [
            ({"scores": [math.nan, 1.0]}, "score of sequence 0 is nan"),
            ({"scores": [0.0, math.inf]}, "score of sequence 1 is inf"),
            ({"scores": [0.0, np.float32("nan")]}, "score of sequence 1 is nan"),
            ({"scores": [0.0, None]}, "score of sequence 1: None where a number is wanted"),
            ({"scores": ["0.5", 1.0]}, "score of sequence 0: a str where a number is wanted"),
            ({"scores": [[0.5], 1.0]}, "score of sequence 0: a list where a number is wanted"),
            ({"scores": [np.array([1.0, 2.0]), 1.0]}, "score of sequence 0: a ndarray of several entries"),
            ({"scores": [0.0, 10**400]}, "score of sequence 1: an int too large for a float"),
            ({"scores": [1.0]}, "scores: 1 entries for 2 sequences"),
            ({"scores": []}, "scores: 0 entries for 2 sequences"),
            ({"scores": None}, "scores is None"),
            ({"masks": [[-100] * 6]}, "masks: 1 entries for 2 sequences"),
            ({"masks": [[-100] * 6, [-100] * 5]}, "masks of sequence 1: 5 entries for 6 tokens"),
            ({"masks": [[-100] * 6, [None] * 6]}, "masks of sequence 1, entry 0: None where an int is wanted"),
            ({"masks": [[-100] * 6, [0.5] * 6]}, "masks of sequence 1, entry 0: a float where an int is wanted"),
            ({"tokens": [[1, 2, None, 4, 5, 6], [1] * 6]}, "tokens of sequence 0, entry 2: None"),
            ({"tokens": [None, [1] * 6]}, "tokens of sequence 0: None where a list is wanted"),
            ({"tokens": [[], [1] * 6]}, "tokens of sequence 0 is empty"),
            ({"tokens": [[1, -100, 3, 4, 5, 6], [1] * 6]}, "tokens of sequence 0, entry 1: -100 is no token id"),
            ({"tokens": [[1] * 6, [2**32] * 6]}, "tokens of sequence 1, entry 0: 4294967296 is no token id"),
            ({"tokens": ["abcdef", [1] * 6]}, "tokens of sequence 0: a str where a list is wanted"),
            ({"advantages": [[0.1] * 6, [0.1] * 5]}, "advantages of sequence 1: 5 entries for 6 tokens"),
            ({"advantages": [[0.1] * 6, [math.nan] * 6]}, "advantages of sequence 1, entry 0 is nan"),
            ({"advantages": [[0.1] * 6]}, "advantages: 1 entries for 2 sequences"),
            ({"advantages": [[0.1] * 6, 0.1]}, "advantages of sequence 1: a float where a list is wanted"),
            ({"ref_logprobs": [[-0.1] * 6, None]}, "ref_logprobs of sequence 1 is missing"),
            ({"inference_logprobs": [[-0.1] * 6, [-0.1] * 7]}, "inference_logprobs of sequence 1: 7 entries for 6"),
            ({"inference_logprobs": [[-0.1] * 6, [-math.inf] * 6]}, "inference_logprobs of sequence 1, entry 0 is -i"),
            ({"inference_logprobs": [[-0.1] * 6, []]}, "inference_logprobs of sequence 1 is missing"),
            ({"overrides": [{}]}, "overrides: 1 entries for 2 sequences"),
            ({"overrides": [{}, "sft"]}, "overrides of sequence 1: a str where an object is wanted"),
            ({"group_overrides": "sft"}, "group_overrides: a str where an object is wanted"),
            ({"group_overrides": {"group_size": "two"}}, "group_overrides, group_size: a str"),
            ({"generation_params": 0.7}, "generation_params: a float where an object is wanted"),
            ({"distill_token_ids": [[[1]] * 6] * 2}, "distill_logprobs is missing"),
            ({"distill_logprobs": [[[-1.0]] * 6] * 2}, "distill_token_ids is missing"),
            (
                {"distill_token_ids": [[[1]] * 6, [[1]] * 5], "distill_logprobs": [[[-1.0]] * 6] * 2},
                "distill_token_ids of sequence 1: 5 entries for 6 tokens",
            ),
            (
                {"distill_token_ids": [[[1, 2]] * 6] * 2, "distill_logprobs": [[[-1.0]] * 6] * 2},
                "distillation of sequence 0, position 0: 2 ids and 1 logprobs",
            ),
            (
                {"distill_token_ids": [[[1]] * 6] * 2, "distill_logprobs": [[[math.nan]] * 6] * 2},
                "distill_logprobs of sequence 0, position 0, entry 0 is nan",
            ),
        ],
    )  # fmt: skip
    def test_the_detail_names_the_sequence_and_the_field(self, change: dict[str, Any], detail: str) -> None:
        result = kept_back({**scored_group(), **change}, GroupChecks(2))
        assert result.reason is SkipReason.MALFORMED
        assert detail in result.detail
        assert result.scores == ()

    @pytest.mark.parametrize("field", ["tokens", "masks", "scores"])
    def test_a_missing_field_is_named(self, field: str) -> None:
        group = scored_group()
        del group[field]
        assert kept_back(group, GroupChecks(2)).detail == f"{field} is missing"

    @pytest.mark.parametrize("group", [None, 5, "text", [1, 2], object()])
    def test_what_is_no_group_at_all_is_malformed(self, group: object) -> None:
        assert kept_back(group).reason is SkipReason.MALFORMED

    def test_a_batch_encoding_in_place_of_token_ids_tells_the_remedy(self) -> None:
        from transformers import BatchEncoding

        encoded = BatchEncoding({"input_ids": [1, 2], "attention_mask": [1, 1]})
        result = kept_back({**scored_group(), "tokens": [encoded, encoded]}, GroupChecks(2))
        assert "tokens of sequence 0: a BatchEncoding where a list is wanted" in result.detail
        assert "return_dict=False" in result.detail

    def test_what_can_be_read_of_it_can_be_looked_at(self) -> None:
        group = scored_group([0.5, None], messages=[[{"role": "user", "content": "q"}], 3])
        content = kept_back(group).content
        assert content is not None
        first, second = content.rollouts
        assert (first.score, list(first.tokens)[:2], list(first.messages)) == (
            0.5,
            [0, 1],
            [{"role": "user", "content": "q"}],
        )
        assert (second.score, list(second.tokens)[:2], list(second.messages)) == (None, [100, 101], [])

    def test_objects_that_raise_when_they_are_read_are_malformed(self) -> None:
        class Hostile(list[int]):
            def __iter__(self) -> Any:
                raise KeyError("no")

            def __len__(self) -> int:
                raise ZeroDivisionError

        result = kept_back({**scored_group(), "tokens": [Hostile(), [1]], "overrides": Hostile()}, GroupChecks(2))
        assert result.reason is SkipReason.MALFORMED
        assert "Error" in result.detail

    @unhurried
    @given(group=anything)
    def test_no_value_whatever_makes_a_check_raise(self, group: object) -> None:
        assert isinstance(check(group, GroupChecks(2)), Rejection)

    @settings(unhurried, max_examples=300)
    @given(group=well_formed_groups(), data=st.data())
    def test_a_group_with_anything_in_any_place_is_let_through_only_in_good_shape(
        self, group: dict[str, Any], data: st.DataObject
    ) -> None:
        field = data.draw(st.sampled_from(sorted(group)))
        if isinstance(group[field], list) and data.draw(st.booleans()):
            group[field][data.draw(st.integers(0, len(group[field]) - 1))] = data.draw(anything)
        else:
            group[field] = data.draw(anything)
        result = check(group, GroupChecks(len(group["tokens"]) if isinstance(group["tokens"], list) else 1))
        if isinstance(result, CheckedGroup):
            _assert_good_shape(json.loads(encode_group(result.body).json))


class TestSizes:
    @pytest.mark.parametrize("group", [{}, {"tokens": [], "masks": [], "scores": []}])
    def test_a_group_without_sequences_is_empty(self, group: dict[str, Any]) -> None:
        assert kept_back(group).reason is SkipReason.EMPTY

    def test_a_group_of_another_size_says_both_sizes(self) -> None:
        result = kept_back(scored_group([0.0, 1.0, 2.0]), GroupChecks(4))
        assert result.reason is SkipReason.WRONG_GROUP_SIZE
        assert result.detail == "3 sequences where 4 are expected"
        assert result.content is not None

    @pytest.mark.parametrize("size", [3, np.int64(3), 3.0])
    def test_a_group_may_override_its_size(self, size: Any) -> None:
        group = scored_group([0.0, 1.0, 2.0], group_overrides={"group_size": size})
        assert accepted(group, GroupChecks(4)).scores == (0.0, 1.0, 2.0)

    def test_the_size_of_the_environment_holds_when_the_override_is_none(self) -> None:
        group = scored_group([0.0, 1.0, 2.0], group_overrides={"group_size": None})
        assert kept_back(group, GroupChecks(4)).reason is SkipReason.WRONG_GROUP_SIZE


class TestNothingToTrainOn:
    def test_a_group_without_one_trainable_token_says_so(self) -> None:
        group = scored_group(prompt=6)
        result = kept_back(group)
        assert result.reason is SkipReason.NO_TRAINABLE_TOKENS
        assert "-100" in result.detail
        assert result.completion_tokens == (0, 0)

    def test_one_sequence_without_a_trainable_token_is_the_environments_choice(self) -> None:
        group = scored_group()
        group["masks"][0] = [-100] * 6
        assert accepted(group).completion_tokens == (0, 4)


class TestLength:
    def test_a_sequence_as_long_as_the_limit_is_too_long(self) -> None:
        result = kept_back(scored_group(), max_token_len=6)
        assert result.reason is SkipReason.TOO_LONG
        assert result.detail == "sequence 0 has 6 tokens; the trainer takes less than 6"
        assert (result.scores, result.truncated) == ((0.0, 1.0), 2)

    @pytest.mark.parametrize("limit", [7, 0, -1])
    def test_a_shorter_one_is_not_nor_is_any_without_a_limit(self, limit: int) -> None:
        assert accepted(scored_group(), max_token_len=limit).truncated == 0

    def test_without_the_flag_a_long_group_goes_on_and_counts_as_cut(self) -> None:
        assert accepted(scored_group(), max_token_len=6, abort_on_any_max_length_exceeded=False).truncated == 2


class TestIdenticalScores:
    @pytest.mark.parametrize("scores", [[0.3, 0.3, 0.3, 0.3], [0.1 + 0.2, 0.3, 0.3, 0.3], [1e9, 1e9 + 1e-3], [5, 5.0]])
    def test_scores_that_differ_by_rounding_only_are_identical(self, scores: list[float]) -> None:
        result = kept_back(scored_group(scores))
        assert result.reason is SkipReason.IDENTICAL_SCORES
        assert result.scores == tuple(map(float, scores))

    @pytest.mark.parametrize("scores", [[0.3, 0.31], [0.1, 0.2, 0.3, 0.4], [1e6, 1e6 + 1], [0.0, 1e-4]])
    def test_scores_that_differ_are_not(self, scores: list[float]) -> None:
        accepted(scored_group(scores))

    def test_the_tolerance_can_be_chosen(self) -> None:
        assert kept_back(scored_group([0.3, 0.31]), GroupChecks(2, score_tolerance=0.1)).split is not None

    def test_a_group_of_one_has_no_variance_to_lack(self) -> None:
        assert accepted(scored_group([1.0])).scores == (1.0,)

    def test_a_signal_for_each_token_teaches_whatever_the_scores_are(self) -> None:
        accepted(scored_group([1.0, 1.0], advantages=[[0.5] * 6, [-0.5] * 6]))
        accepted(scored_group([1.0, 1.0], distill_token_ids=[[[1]] * 6] * 2, distill_logprobs=[[[-1.0]] * 6] * 2))

    def test_the_filter_can_be_off(self) -> None:
        accepted(scored_group([1.0, 1.0]), GroupChecks(2, ensure_scores_are_not_same=False))

    def test_too_easy_and_too_hard_are_told_apart_by_the_run(self) -> None:
        checks = GroupChecks(2)
        accepted(scored_group([-3.0, 7.0]), checks)
        assert kept_back(scored_group([7.0, 7.0]), checks).split is ScoreSplit.ALL_BEST
        assert kept_back(scored_group([-3.0, -3.0]), checks).split is ScoreSplit.ALL_WORST
        assert kept_back(scored_group([1.0, 1.0]), checks).split is ScoreSplit.ALL_EQUAL
        assert kept_back(scored_group([9.0, 9.0]), checks).split is ScoreSplit.ALL_BEST
        assert kept_back(scored_group([7.0, 7.0]), checks).split is ScoreSplit.ALL_EQUAL

    @pytest.mark.parametrize(
        ("score", "split"),
        [(1.0, "all_best"), (2.5, "all_best"), (0.0, "all_worst"), (-1.0, "all_worst"), (0.5, "all_equal")],
    )
    def test_while_the_run_knows_one_score_only_convention_decides(self, score: float, split: str) -> None:
        checks = GroupChecks(2)
        assert [kept_back(scored_group([score, score]), checks).split for _ in range(3)] == [split] * 3

    def test_malformed_groups_do_not_move_the_range(self) -> None:
        checks = GroupChecks(2)
        accepted(scored_group([0.0, 0.5]), checks)
        kept_back({**scored_group([99.0, 0.0]), "masks": [[1], [2]]}, checks)
        assert kept_back(scored_group([0.5, 0.5]), checks).split is ScoreSplit.ALL_BEST


def _converted(value: Any, into: str) -> Any:
    """Nested plain lists as something else that converts to them."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        rows = [_converted(row, into) for row in value]
        return tuple(rows) if into == "tuples" else rows
    match into:
        case "numpy":
            return np.array(value)
        case "tuples":
            return tuple(value)
        case "tensors":
            return Tensor(value)
        case _:
            return [Scalar(entry) for entry in value]


def _assert_good_shape(sent: dict[str, Any]) -> None:
    lengths = [len(sequence) for sequence in sent["tokens"]]
    assert lengths
    assert all(lengths)
    assert all(isinstance(score, float) for score in sent["scores"])
    assert len(sent["scores"]) == len(lengths)
    for field in ("masks", "advantages", "ref_logprobs", "inference_logprobs", "distill_token_ids", "distill_logprobs"):
        if sent[field] is not None:
            assert [len(row) for row in sent[field]] == lengths
            assert None not in [entry for row in sent[field] for entry in row]
    assert sent["overrides"] is None or len(sent["overrides"]) == len(lengths)


def test_groups_are_checked_whatever_else_of_a_mapping_they_are() -> None:
    from types import MappingProxyType

    accepted(MappingProxyType(scored_group()), GroupChecks(2))
    assert kept_back(SimpleNamespace(**scored_group())).detail == "a SimpleNamespace where a scored group is wanted"
