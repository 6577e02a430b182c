"""Tokenizers load offline, or say what to do; each token's own text can be shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.runtime.tokenizer import load_tokenizer, token_pieces
from tests.inference.small_tokenizer import small_tokenizer


def test_a_tokenizer_that_is_not_there_is_told_with_the_flag_to_set(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no tokenizer .*--env\.tokenizer_name") as raised:
        load_tokenizer(str(tmp_path / "none"))
    assert "\n" not in str(raised.value)


def test_the_chat_template_gives_ids_unless_asked_otherwise(tokenizer_dir: Path):
    tokenizer = load_tokenizer(str(tokenizer_dir))
    chat = [{"role": "user", "content": "hi"}]
    ids = tokenizer.apply_chat_template(chat)
    assert ids == tokenizer.encode("user: hi\n")
    assert tokenizer.apply_chat_template(chat, return_dict=True)["input_ids"] == ids
    assert tokenizer.apply_chat_template(chat, tokenize=False) == "user: hi\n"


@pytest.mark.parametrize("text", ["hello there", "äöü – ‘quoted’", "日本語 🙂🙂", "a\nb\t  c", ""])
def test_pieces_put_together_are_the_text(text: str):
    tokenizer = small_tokenizer()
    ids = tokenizer.encode(text)
    pieces = token_pieces(tokenizer, ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == text


def test_a_character_of_several_tokens_stands_at_the_last_of_them():
    tokenizer = small_tokenizer()
    assert token_pieces(tokenizer, tokenizer.encode("ä")) == ["", "ä"]


def test_half_a_character_is_shown_and_not_lost():
    tokenizer = small_tokenizer()
    assert token_pieces(tokenizer, tokenizer.encode("aä")[:-1]) == ["a", "\ufffd"]


def test_nothing_is_said_of_a_missing_pytorch():
    code = "import atropos_tui.runtime.base_env, transformers; transformers.AutoTokenizer"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert "PyTorch" not in said.stdout + said.stderr
