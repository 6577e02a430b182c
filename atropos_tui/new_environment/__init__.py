"""What `atropos-tui new` writes: an environment that runs as it stands, and its test, to be changed line by line."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from atropos_tui.errors import UsageError

_TEMPLATES = Path(__file__).parent


def write_environment(name: str, directory: Path) -> list[Path]:
    """Write `NAME.py` and `test_NAME.py`; returns their paths. Raises UsageError for a bad name or files in the way."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be the name of a module", "take small letters, digits and _, like my_task")
    filled = {"name": name, "class_name": "".join(part.capitalize() for part in name.split("_")) + "Env"}
    files = {
        directory / f"{name}.py": "environment.py.template",
        directory / f"test_{name}.py": "test.py.template",
    }
    for path in files:
        if path.exists():
            raise UsageError(f"{path} is there already", "choose another name, or take it away")
    for path, template in files.items():
        text = Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(filled)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}", "choose another --directory") from error
    return list(files)
