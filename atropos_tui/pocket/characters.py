"""The policy's vocabulary without transformers: texts to token ids and back, chats to prompts.

Reads the same files as `AutoTokenizer.from_pretrained(tokenizer_dir())`, in milliseconds instead of seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jinja2
from tokenizers import Tokenizer

from atropos_tui.pocket.tokenizer import tokenizer_dir

END_TOKEN = "<eos>"
TURN_TOKEN = ">"


class Characters:
    """Tokens of the pocket policy. `end` is the id that ends an answer, `turn` the one that ends what is asked."""

    def __init__(self) -> None:
        directory = tokenizer_dir()
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._chat_template = jinja2.Environment(autoescape=False).from_string(
            (directory / "chat_template.jinja").read_text(encoding="utf-8")
        )
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        self._written = {token_id: token for token, token_id in vocabulary.items()}
        self.size = len(vocabulary)
        self.end = vocabulary[END_TOKEN]
        self.turn = vocabulary[TURN_TOKEN]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; a character that isn't in the vocabulary becomes `?`."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, without the end of the answer."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def token(self, token_id: int) -> str:
        """How one token is written, the end of the answer too."""
        return self._written[token_id]

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt of a chat, by the tokenizer's own template."""
        return self._chat_template.render(messages=messages, eos_token=END_TOKEN)
