"""The tokenizer of the pocket policy: one token a letter, a chat template, and no hub to load it from."""

from __future__ import annotations

from pathlib import Path


def tokenizer_dir() -> Path:
    """The directory to give to `AutoTokenizer.from_pretrained`, or as a `tokenizer_name`."""
    return Path(__file__).resolve().parent
