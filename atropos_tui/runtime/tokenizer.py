"""Loading a tokenizer, and showing what each of its tokens stands for."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

from atropos_tui.errors import UsageError
from atropos_tui.runtime.failures import describe

REPLACEMENT = "\ufffd"

# Before anybody imports transformers: it would say that there is no PyTorch, and tokenizers are all that is wanted.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


def load_tokenizer(name: str) -> Any:
    """The tokenizer of a directory or of the hub. Raises UsageError when there is none.

    Its `apply_chat_template` returns plain ids as it did before transformers 5, unless asked for something else.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name)
    except Exception as error:
        raise UsageError(
            f"no tokenizer {name!r}: {describe(error)}",
            "set --env.tokenizer_name to a directory with a tokenizer, or to a name on the hub that can be reached",
        ) from error
    template = getattr(tokenizer, "apply_chat_template", None)
    if template is not None:
        tokenizer.apply_chat_template = functools.partial(_plain_ids, template)
    return tokenizer


def token_pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text of each token. Of tokens that only together make a character, the last one has it."""
    texts = {token: tokenizer.decode([token]) for token in set(ids)}
    pieces = [texts[token] for token in ids]
    if not any(REPLACEMENT in piece for piece in pieces) and "".join(pieces) == tokenizer.decode(list(ids)):
        return pieces
    return _pieces_in_context(tokenizer, ids)


def _pieces_in_context(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Each token as what it adds to the text of those shortly before it."""
    pieces: list[str] = []
    start = shown = 0
    for index in range(len(ids)):
        before = tokenizer.decode(list(ids[start:shown]))
        now = tokenizer.decode(list(ids[start : index + 1]))
        if now.endswith(REPLACEMENT) and index + 1 < len(ids):
            pieces.append("")
            continue
        pieces.append(now[len(before) :])
        start, shown = shown, index + 1
    return pieces


def _plain_ids(template: Any, *arguments: Any, **options: Any) -> Any:
    options.setdefault("return_dict", False)
    return template(*arguments, **options)
