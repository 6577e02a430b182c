"""The pocket tokenizer as the server needs it, without loading transformers: letters to ids and back."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from atropos_tui.pocket.policy import PolicyShape
from atropos_tui.pocket.tokenizer import tokenizer_dir

END = "<eos>"
TURN = ">"


class PocketTokenizer:
    """One token a letter. `end` ends a reply, `turn` whatever the user said; `longest` is the context in tokens."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer_dir() / "tokenizer.json"))
        self.size = self._tokenizer.get_vocab_size()
        self.end = self._id(END)
        self.turn = self._id(TURN)
        self.longest = policy_shape(self).positions

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_chat(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Role and content of each message, as the chat template of `tokenizer/` renders them."""
        ends = {"assistant": END}
        return self.encode("".join(content + ends.get(role, TURN) for role, content in messages))

    def decode(self, ids: Sequence[int], skip_end: bool = False) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=skip_end)
        return text

    def _id(self, token: str) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise ValueError(f"the pocket tokenizer has no token {token!r}")
        return int(found)


def policy_shape(tokenizer: PocketTokenizer) -> PolicyShape:
    """The policy that server and trainer share."""
    return PolicyShape(vocabulary=tokenizer.size)
