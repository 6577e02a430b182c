"""Decoding asks the core of a tokenizer, and says what the tokenizer itself would."""

from __future__ import annotations

from typing import Any

import pytest

from atropos_tui.inference.decoding import Detokenizer
from tests.inference.fake_inference_server import FakeServer
from tests.inference.managing import managing
from tests.inference.small_tokenizer import small_tokenizer


@pytest.mark.parametrize("skip", [True, False])
def test_the_text_is_the_tokenizers_own(skip: bool) -> None:
    tokenizer = small_tokenizer()
    tokens = [*tokenizer.encode("what is 2 plus 2 ?"), tokenizer.eos_token_id, *range(len(tokenizer))]
    wanted = tokenizer.decode(tokens, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
    assert Detokenizer(tokenizer).decode(tokens, skip_special_tokens=skip) == wanted


def test_a_class_with_a_decode_of_its_own_is_asked_itself() -> None:
    tokenizer = small_tokenizer()

    class Shouting(type(tokenizer)):  # type: ignore[misc]
        def decode(self, token_ids: Any, **options: Any) -> str:
            return str(super().decode(token_ids, **options)).upper() + "!"

    tokenizer.__class__ = Shouting
    assert Detokenizer(tokenizer).decode(tokenizer.encode("what")).endswith("!")


def test_a_tokenizer_that_is_none_of_transformers_is_asked_in_its_own_words() -> None:
    class Own:
        def decode(self, token_ids: list[int], skip_special_tokens: bool) -> str:
            return f"{token_ids} {skip_special_tokens}"

    assert Detokenizer(Own()).decode([1, 2], skip_special_tokens=True) == "[1, 2] True"


def test_tokens_that_decoding_may_leave_out_are_found_also_when_there_come_to_be_more() -> None:
    tokenizer = small_tokenizer()
    detokenizer = Detokenizer(tokenizer)
    assert detokenizer.may_hide([tokenizer.eos_token_id])
    plain = tokenizer.encode("what is", add_special_tokens=False)
    assert not detokenizer.may_hide(plain)
    tokenizer.add_tokens(["what is"])
    assert detokenizer.may_hide(tokenizer.encode("what is", add_special_tokens=False))
    assert not detokenizer.may_hide(plain)
    assert Detokenizer(object()).may_hide([1])


async def test_the_managed_servers_of_a_manager_share_what_is_known_of_their_tokenizer() -> None:
    tokenizer = small_tokenizer()
    async with FakeServer("vllm") as fake, managing(fake) as servers:
        kept = []
        for each in (tokenizer, tokenizer, small_tokenizer()):
            async with servers.managed_server(each) as managed:
                kept.append(managed.detokenizer)
        assert kept[0] is kept[1] is not kept[2]
        assert kept[2].tokenizer is not tokenizer
