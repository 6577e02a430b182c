"""Tokens and masks of chats: what was sampled is trained on, whatever the template and the version of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BatchEncoding

from atropos_tui.errors import ContractError
from atropos_tui.runtime.tokens import tokenize_for_trainer
from tests.runtime.chat_tokenizers import TEMPLATES, chat_tokenizer
from tests.runtime.scored_groups import unhurried

SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "2+2?"}
FOUR = {"role": "assistant", "content": "4"}
ASK_MORE = {"role": "user", "content": "3+3?"}
SIX = {"role": "assistant", "content": "6"}

CHAT = [SYSTEM, ASK, FOUR]
LONG_CHAT = [SYSTEM, ASK, FOUR, ASK_MORE, SIX]

TOKENIZERS = {template: chat_tokenizer(template) for template in TEMPLATES}


def trained_text(template: str, chat: list[dict[str, Any]], **options: Any) -> list[str]:
    """The pieces of a chat that are trained on; every invariant is checked on the way."""
    tokenizer = TOKENIZERS[template]
    result = tokenize_for_trainer(tokenizer, chat, **options)
    tokens, masks = result["tokens"], result["masks"]
    assert {type(entry) for entry in tokens + masks} == {int}
    assert len(tokens) == len(masks)
    whole = tokenizer.apply_chat_template(chat, return_dict=False)
    assert tokens == whole if options.get("finish_reason") != "length" else whole[: len(tokens)]
    assert all(mask in (-100, token) for mask, token in zip(masks, tokens, strict=True))
    pieces: list[list[int]] = [[]]
    for mask in masks:
        if mask != -100:
            pieces[-1].append(mask)
        elif pieces[-1]:
            pieces.append([])
    return [tokenizer.decode(piece) for piece in pieces if piece]


class TestTheLastTurn:
    @pytest.mark.parametrize(
        ("template", "trained"),
        [
            ("chatml", "4<|im_end|>\n"),
            ("no thinking", "4<|im_end|>\n"),
            ("thinking", "4<|im_end|>\n"),
            ("forgets thinking", "<think>\n\n</think>\n\n4<|im_end|>\n"),
            ("inst", "4</s>"),
            ("one end", "4</s>"),
            ("needs a question", "4<|im_end|>\n"),
            ("tools", "4<|im_end|>\n"),
        ],
    )
    def test_is_trained_on_with_its_end_and_without_its_header(self, template: str, trained: str) -> None:
        assert trained_text(template, CHAT) == [trained]
        assert trained_text(template, [SYSTEM, ASK_MORE, SIX, ASK, FOUR]) == [trained]

    def test_thinking_that_the_prompt_opened_is_not_trained_on_what_follows_is(self) -> None:
        thought = {"role": "assistant", "content": "<think>\nhm\n</think>\n4"}
        assert trained_text("thinking", [ASK, thought]) == ["hm\n</think>\n4<|im_end|>\n"]

    def test_a_token_that_reaches_from_the_prompt_into_the_content_is_trained_on(self) -> None:
        reply = {"role": "assistant", "content": "\nthen"}
        assert trained_text("chatml", [ASK, reply]) == ["\n\nthen<|im_end|>\n"]

    def test_thinking_in_earlier_turns_does_not_shift_the_mask(self) -> None:
        thought = {"role": "assistant", "content": "<think>\nhm\n</think>\n\n4"}
        more = {"role": "assistant", "content": "<think>\nso\n</think>\n\n6"}
        assert trained_text("forgets thinking", [ASK, thought, ASK_MORE, more]) == [
            "<think>\nso\n</think>\n\n6<|im_end|>\n"
        ]

    def test_a_reply_without_a_question_is_trained_on_alone(self) -> None:
        assert trained_text("chatml", [FOUR]) == ["4<|im_end|>\n"]
        assert trained_text("inst", [FOUR]) == ["4</s>"]
        with pytest.raises(Exception, match="no user query"):
            trained_text("needs a question", [FOUR])

    def test_a_beginning_that_the_template_refuses_does_not_matter(self) -> None:
        assert trained_text("needs a question", [SYSTEM, FOUR, ASK], train_on_all_assistant_turns=True) == [
            "4<|im_end|>"
        ]

    def test_whatever_its_role_the_last_message_is_the_one_that_is_trained_on(self) -> None:
        (text,) = trained_text("chatml", [ASK, {"role": "agent", "content": "go left"}])
        assert text.endswith("go left<|im_end|>\n")
        assert "2+2" not in text


class TestAllTurns:
    @pytest.mark.parametrize(
        ("template", "trained"),
        [
            ("chatml", ["4<|im_end|>\n", "6<|im_end|>\n"]),
            ("no thinking", ["4<|im_end|>\n", "6<|im_end|>\n"]),
            ("forgets thinking", ["4<|im_end|>", "<think>\n\n</think>\n\n6<|im_end|>\n"]),
            ("inst", ["4</s>", "6</s>"]),
            ("one end", ["4", "6</s>"]),
        ],
    )
    def test_each_turn_of_the_assistant_is_trained_on(self, template: str, trained: list[str]) -> None:
        assert trained_text(template, LONG_CHAT, train_on_all_assistant_turns=True) == trained

    def test_agents_are_trained_on_like_assistants_and_nobody_else(self) -> None:
        chat = [ASK, {"role": "agent", "content": "left"}, {"role": "environment", "content": "wall"}, FOUR]
        first, second = trained_text("chatml", chat, train_on_all_assistant_turns=True)
        assert first.endswith("left<|im_end|>\n")
        assert second == "4<|im_end|>\n"

    def test_tool_calls_are_trained_on_and_what_the_tools_say_is_not(self) -> None:
        call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]}
        chat = [ASK, call, {"role": "tool", "content": "result 4"}, FOUR]
        assert trained_text("tools", chat, train_on_all_assistant_turns=True) == [
            "<tool_call>add</tool_call><|im_end|>\n",
            "4<|im_end|>\n",
        ]

    def test_the_last_message_may_be_a_question(self) -> None:
        assert trained_text("chatml", [ASK, FOUR, ASK_MORE], train_on_all_assistant_turns=True) == ["4<|im_end|>\n"]

    @settings(unhurried, max_examples=300)
    @given(
        template=st.sampled_from(sorted(set(TEMPLATES) - {"drops replies", "tools"})),
        roles=st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=6),
        openings=st.lists(
            st.sampled_from(["", "the", "\n", " x", "é", "<think>\nhm\n</think>\n\n"]), min_size=6, max_size=6
        ),
        endings=st.lists(st.sampled_from([".", " an", "x", "\n", "é"]), min_size=6, max_size=6),
        all_turns=st.booleans(),
    )
    def test_every_reply_is_trained_on_and_no_question_is(
        self, template: str, roles: list[str], openings: list[str], endings: list[str], all_turns: bool
    ) -> None:
        chat = [{"role": "user", "content": "start"}]
        for number, role in enumerate(roles):
            opening = openings[number] if role == "assistant" else ""
            chat.append({"role": role, "content": f"{opening}{role}{number}{endings[number]}"})
        chat.append({"role": "assistant", "content": "the end"})
        trained = "|".join(trained_text(template, chat, train_on_all_assistant_turns=all_turns))
        assert "the end" in trained
        for number, role in enumerate(roles):
            assert (f"{role}{number}" in trained) == (all_turns and role == "assistant")


class TestCutTurns:
    @pytest.mark.parametrize("template", sorted(set(TEMPLATES) - {"drops replies"}))
    @pytest.mark.parametrize("all_turns", [False, True])
    def test_a_cut_turn_is_trained_on_without_the_end_that_the_model_never_sampled(
        self, template: str, all_turns: bool
    ) -> None:
        chat = [ASK, {"role": "assistant", "content": "four, the"}]
        (text,) = trained_text(template, chat, finish_reason="length", train_on_all_assistant_turns=all_turns)
        assert text.endswith("four, the")

    def test_earlier_turns_keep_their_end(self) -> None:
        trained = trained_text("chatml", LONG_CHAT, finish_reason="length", train_on_all_assistant_turns=True)
        assert trained == ["4<|im_end|>\n", "6"]

    def test_an_end_of_sequence_in_the_content_goes_too(self) -> None:
        assert trained_text("one end", [ASK, {"role": "assistant", "content": "4</s>"}], finish_reason="length") == [
            "4"
        ]

    @pytest.mark.parametrize("finish_reason", ["stop", "", "tool_calls"])
    def test_other_turns_keep_it(self, finish_reason: str) -> None:
        assert trained_text("chatml", CHAT, finish_reason=finish_reason) == ["4<|im_end|>\n"]


class Converting:
    """A tokenizer whose `apply_chat_template` answers as some version of transformers does."""

    def __init__(self, convert: Any) -> None:
        self._tokenizer = TOKENIZERS["chatml"]
        self._convert = convert
        self.eos_token_id = self._tokenizer.eos_token_id

    def apply_chat_template(self, chat: Any, return_dict: bool | None = None, **options: Any) -> Any:
        ids = self._tokenizer.apply_chat_template(chat, return_dict=False, **options)
        return self._convert(ids, return_dict)


VERSIONS = {
    "transformers 4": lambda ids, return_dict: BatchEncoding({"input_ids": ids}) if return_dict else ids,
    "transformers 5": lambda ids, return_dict: ids if return_dict is False else BatchEncoding({"input_ids": ids}),
    "always a BatchEncoding": lambda ids, return_dict: BatchEncoding({"input_ids": ids, "attention_mask": ids}),
    "a batch of one": lambda ids, return_dict: [ids],
    "an array": lambda ids, return_dict: np.array(ids),
    "a batch in an encoding": lambda ids, return_dict: BatchEncoding({"input_ids": np.array([ids])}),
}


class TestVersionsOfTransformers:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("options", [{}, {"train_on_all_assistant_turns": True}, {"finish_reason": "length"}])
    def test_tokens_are_ids_whatever_the_template_returns(self, version: str, options: dict[str, Any]) -> None:
        expected = tokenize_for_trainer(TOKENIZERS["chatml"], LONG_CHAT, **options)
        assert tokenize_for_trainer(Converting(VERSIONS[version]), LONG_CHAT, **options) == expected

    def test_a_template_that_gives_no_ids_is_named(self) -> None:
        with pytest.raises(ContractError, match="token ids from the chat template of Converting: a str"):
            tokenize_for_trainer(Converting(lambda ids, return_dict: "text"), CHAT)


class TestTheAnswer:
    def test_messages_come_along_if_asked_for(self) -> None:
        tokenizer = TOKENIZERS["chatml"]
        assert set(tokenize_for_trainer(tokenizer, CHAT)) == {"tokens", "masks"}
        assert tokenize_for_trainer(tokenizer, CHAT, True)["messages"] is CHAT

    def test_a_chat_may_be_a_tuple(self) -> None:
        tokenizer = TOKENIZERS["chatml"]
        assert tokenize_for_trainer(tokenizer, tuple(CHAT)) == tokenize_for_trainer(tokenizer, CHAT)

    def test_a_template_that_leaves_nothing_to_train_on_is_named(self) -> None:
        with pytest.raises(ContractError, match="the template 'drops replies' leaves no token to train on"):
            tokenize_for_trainer(TOKENIZERS["drops replies"], CHAT)

    def test_a_chat_without_a_reply_says_so_when_replies_are_asked_for(self) -> None:
        with pytest.raises(ContractError, match="leaves no token to train on in a chat of 2 messages"):
            tokenize_for_trainer(TOKENIZERS["chatml"], [SYSTEM, ASK], train_on_all_assistant_turns=True)

    def test_an_empty_chat_says_so(self) -> None:
        with pytest.raises(ContractError, match="empty chat"):
            tokenize_for_trainer(TOKENIZERS["chatml"], [])
