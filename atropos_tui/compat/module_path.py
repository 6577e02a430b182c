"""Which `atroposlib` a process imports: ours, and through it what only an installed one has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

MODULE_PATH = Path(__file__).resolve().parent / "path"
PACKAGE = "atroposlib"
WHAT_BRINGS_IT = "`pip install atroposlib` brings it"


def enable() -> None:
    """Let this process, and those it starts, import our `atroposlib`, even where another one is installed."""
    others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    os.environ["PYTHONPATH"] = os.pathsep.join(_first(others))
    sys.path[:] = _first(sys.path)
    # Now, while ours comes first: a script's own folder, which comes before it later, may be a checkout of atroposlib.
    import_module(PACKAGE)


def package_path(package: str) -> list[str]:
    """The `__path__` of a package of ours: its own folder, then those of an installed `atroposlib`."""
    if package == PACKAGE:
        _explain_what_is_missing()
        return list(dict.fromkeys([str(MODULE_PATH / PACKAGE), *_installed_folders()]))
    parent, _, name = package.rpartition(".")
    return [str(Path(folder) / name) for folder in sys.modules[parent].__path__]


def _first(entries: Sequence[str]) -> list[str]:
    return [str(MODULE_PATH), *(entry for entry in entries if entry != str(MODULE_PATH))]


def _installed_folders() -> Iterator[str]:
    elsewhere = [entry for entry in sys.path if entry != str(MODULE_PATH)]
    for finder in sys.meta_path:
        # Ordinary folders are found by the path given; editable installs have a finder of their own that ignores it.
        spec = finder.find_spec(PACKAGE, elsewhere)
        if spec is not None:
            yield from spec.submodule_search_locations or ()


class _NoSuchModule:
    """The last finder asked: says what brings a module that neither we nor an installed `atroposlib` have."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(f"{PACKAGE}.") or "._installed_" in name:
            return None
        raise ModuleNotFoundError(f"atropos-tui has no {name}; {WHAT_BRINGS_IT}", name=name)


def _explain_what_is_missing() -> None:
    if _NoSuchModule not in sys.meta_path:
        sys.meta_path.append(_NoSuchModule)
