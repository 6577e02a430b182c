"""Token ids as text, as the tokens say it: tidied up in no way, or it would not encode to the same tokens again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Detokenizer:
    """Decodes with a tokenizer. What transformers works out anew whenever it is asked is kept, so keep the object."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._special_ids = frozenset(
            [*getattr(tokenizer, "all_special_ids", ()), getattr(tokenizer, "eos_token_id", None)]
        )
        self._core = tokenizer if _adds_nothing_to_core(tokenizer) else None
        self._hidden_ids: frozenset[int] = frozenset()
        self._length = -1

    def decode(self, tokens: list[int], *, skip_special_tokens: bool = False) -> str:
        """Of one of transformers' fast tokenizers the core is asked: what is around it takes as long again."""
        if self._core is not None:
            return str(self._core.backend_tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens))
        # Other tokenizers need not know the word.
        tidies = hasattr(self.tokenizer, "clean_up_tokenization_spaces")
        tidying = {"clean_up_tokenization_spaces": False} if tidies else {}
        return str(self.tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens, **tidying))

    def may_hide(self, tokens: list[int]) -> bool:
        """Whether any of these may be left out where special tokens are; True if nobody knows."""
        if not hasattr(type(self.tokenizer), "added_tokens_decoder"):
            return True
        if self._length != len(self.tokenizer):
            # It may get more tokens at any time.
            self._length = len(self.tokenizer)
            self._hidden_ids = self._special_ids | frozenset(self.tokenizer.added_tokens_decoder)
        return not self._hidden_ids.isdisjoint(tokens)

    def split_end_of_turn(self, tokens: Sequence[int]) -> tuple[list[int], list[int]]:
        """What was said, and the special tokens that end it."""
        length = len(tokens)
        while length and tokens[length - 1] in self._special_ids:
            length -= 1
        return list(tokens[:length]), list(tokens[length:])


def _adds_nothing_to_core(tokenizer: Any) -> bool:
    """Whether it decodes as all fast tokenizers do, and so as its core does but for the tidying."""
    kind: Any = type(tokenizer)
    if not hasattr(kind, "backend_tokenizer"):
        return False
    from transformers import PreTrainedTokenizerFast as Fast

    return issubclass(kind, Fast) and (kind.decode, kind._decode) == (Fast.decode, Fast._decode)
