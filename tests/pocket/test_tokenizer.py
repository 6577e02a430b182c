"""The tokenizer that is shipped, as transformers loads it and as the inference server reads it."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoTokenizer

from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.tokenizer import tokenizer_dir

CHATS = [
    [{"role": "user", "content": "abcde"}],
    [{"role": "user", "content": "abc"}, {"role": "assistant", "content": "cba"}],
    [{"role": "system", "content": "x"}, {"role": "user", "content": "ab"}, {"role": "assistant", "content": "ba"},
     {"role": "user", "content": "yz"}],
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(str(tokenizer_dir()))


@pytest.fixture(scope="module")
def characters() -> Characters:
    return Characters()


def test_a_token_is_a_letter_and_an_unknown_one_a_question_mark(tokenizer: Any) -> None:
    assert tokenizer.encode("abcé>") == [3, 4, 5, 1, 2]
    assert tokenizer.decode([3, 4, 5, 1, 2], skip_special_tokens=True) == "abc?>"


def test_a_reply_ends_with_the_end_token(tokenizer: Any) -> None:
    text = tokenizer.apply_chat_template(CHATS[1], tokenize=False)
    assert text == "abc>cba<eos>"
    assert tokenizer.encode(text)[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == "abc>cba"


@pytest.mark.parametrize("chat", CHATS)
def test_the_server_reads_chats_as_transformers_does(tokenizer: Any, characters: Characters, chat: Any) -> None:
    ids = tokenizer.apply_chat_template(chat, tokenize=True, add_generation_prompt=True, return_dict=False)
    assert characters.encode(characters.render_chat(chat)) == ids


@pytest.mark.parametrize("text", ["", "abc>", "A b\n<eos>é?"])
def test_the_server_encodes_and_decodes_as_transformers_does(tokenizer: Any, characters: Characters, text: str) -> None:
    ids = tokenizer.encode(text)
    assert characters.encode(text) == ids
    assert characters.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)
    assert [characters.token(one) for one in ids] == tokenizer.convert_ids_to_tokens(ids)
    assert (characters.size, characters.end) == (len(tokenizer), tokenizer.eos_token_id)
