"""Where the files that ship beside the package are: `envs/` and `themes/`, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_directory(name: str) -> Path:
    """The directory `envs` or `themes`. A wheel carries them inside the package, a checkout at its top level."""
    installed = _PACKAGE / "_shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
