"""The token of a run, which opens its control API over TCP: a file (0600) in the run directory."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from atropos_tui.errors import UsageError

TOKEN_FILE = "token"


def read_token(path: Path) -> str:
    """Raises UsageError when there is none."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read the token {path}: {error.strerror}", "copy it from the run's host") from error
    if not token:
        raise UsageError(f"the token file {path} is empty", "copy it from the run's host")
    return token


def token_of(run_dir: Path) -> str:
    """The run's token; made once, so that it stays the same when the run is started again."""
    path = run_dir / TOKEN_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_token(path)
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(token + "\n")
    return token
