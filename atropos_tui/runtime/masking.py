"""Configurations as they may be shown and written down: plain values, and no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

MASK = "***"

# `max_token_length` and `tokenizer_name` are none.
_SECRET_NAME = re.compile(r"(^|_)(api_?keys?|secrets?|passwords?|passwd|credentials?|(hf|access|auth|api)_tokens?)$")
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def is_secret(name: str) -> bool:
    """Whether a field of this name holds a key or a password."""
    return _SECRET_NAME.search(name.lower()) is not None


def shown_url(url: str) -> str:
    """The address without the password or token that it may carry."""
    return _URL_CREDENTIALS.sub(f"{MASK}@", url)


def without_credentials(text: str) -> str:
    """A text in which no address carries a password or token."""
    return _URL_CREDENTIALS.sub("", text)


def plain_values(config: BaseModel) -> dict[str, Any]:
    """The fields as JSON values, whatever types they are of, with secrets masked."""
    return {name: plain_value(name, getattr(config, name, None)) for name in type(config).model_fields}


def plain_value(name: str, value: Any) -> Any:
    """The value of one field; of mappings and lists each part. An empty secret stays: it tells that none is set."""
    return _masked(name, to_jsonable_python(value, serialize_unknown=True, inf_nan_mode="strings"))


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(str(key), part) for key, part in value.items()}
    if isinstance(value, list):
        return [_masked(name, part) for part in value]
    if value and is_secret(name):
        return MASK
    return shown_url(value) if isinstance(value, str) else value
