"""The scripted environments of the runtime's tests, and a fake trajectory API for them."""

from __future__ import annotations

from tests.runtime.conftest import api, make_env, tokenizer_dir

__all__ = ["api", "make_env", "tokenizer_dir"]
