"""Prompts as token ids, and the tokenizer of a server's model."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from atropos_tui.errors import InferenceError
from atropos_tui.inference.config import APIServerConfig

# One at a time in the whole process: transformers imports its parts on first use, and two threads at once break that.
_LOADING = threading.Lock()


class ModelTokenizer:
    """Gives a server the attribute `tokenizer`: that of its model, loaded when first needed, or the one assigned."""

    config: APIServerConfig
    _tokenizer: Any = None

    @property
    def tokenizer(self) -> Any:
        with _LOADING:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self.config)
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    async def prompt_ids(self, arguments: dict[str, Any]) -> list[int]:
        """Take `input_ids`, or else `prompt`, out of the arguments, as ids without a doubled beginning-of-sequence."""
        given, prompt = arguments.pop("input_ids", None), arguments.pop("prompt", None)
        if given is None and prompt is None:
            raise InferenceError("a prompt or input_ids is required", kind="arguments")
        if given is not None:
            # Whoever made ids has a tokenizer; loading another one just to look at the first two is not worth it.
            return without_doubled_bos([int(token) for token in given], self._tokenizer)
        tokenizer = self._tokenizer or await asyncio.to_thread(lambda: self.tokenizer)
        return without_doubled_bos(tokenizer.encode(prompt), tokenizer)


def load_tokenizer(config: APIServerConfig) -> Any:
    """The tokenizer that a server's config names. Raises InferenceError when it cannot be had."""
    from transformers import AutoTokenizer

    name = config.model_name if config.tokenizer_name == "none" else config.tokenizer_name
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "set tokenizer_name to a directory or to a model of the hub"
        raise InferenceError(f"no tokenizer {name!r}: {reason}", remedy, kind="tokenizer") from error


def without_doubled_bos(ids: list[int], tokenizer: Any) -> list[int]:
    """Chat templates write a beginning-of-sequence that encoding then adds once more; one is cut off."""
    bos = getattr(tokenizer, "bos_token_id", None)
    doubled = bos is not None and len(ids) >= 2 and ids[0] == bos == ids[1]
    return ids[1:] if doubled else ids
