"""Where in the module tree a file belongs, told by how it imports the files around it."""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """The name under which a file is imported, and the folders that its imports need on the module path.

    The first of them must come before everything else that is on the path. `name` has dots only where the file imports
    relatively.
    """

    name: str
    folders: tuple[Path, ...]

    @property
    def in_package(self) -> bool:
        return "." in self.name


def module_place(path: Path) -> ModulePlace:
    """The place of a file.

    `from .rules import …` makes it part of the package that its folder is, and `from project.tools import …` in a file
    somewhere below a folder `project` needs the folder above that one.
    """
    levels, packages = _imports(path)
    if levels and not _may_be_package(path.parents[levels - 1]):
        levels = 0
    inside = [folder.name for folder in path.parents[:levels]]
    folders = [path.parents[levels]]
    # With its own folder on the path, a file with that folder's name would hide the package that the folder is.
    if not levels or path.stem != path.parent.name:
        folders.append(path.parent)
    folders += [
        folder.parent for folder in path.parents if folder.name in packages and not _is_there(folder.name, path.parent)
    ]
    return ModulePlace(".".join([*reversed(inside), path.stem]), tuple(dict.fromkeys(folders)))


def _imports(path: Path) -> tuple[int, set[str]]:
    """How many folders up the file imports relatively, and the packages that it imports by their names."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # whoever imports the file gets to know
        return 0, set()
    levels, packages = 0, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            levels = max(levels, node.level)
            packages.add((node.module or "").partition(".")[0] if not node.level else "")
        elif isinstance(node, ast.Import):
            packages.update(alias.name.partition(".")[0] for alias in node.names)
    return min(levels, len(path.parents) - 1), packages - {""}


def _may_be_package(folder: Path) -> bool:
    """Whether the folder's name can be imported, and is not that of a package that was imported from elsewhere."""
    known = sys.modules.get(folder.name)
    return "." not in folder.name and (known is None or str(folder) in getattr(known, "__path__", ()))


def _is_there(package: str, beside: Path) -> bool:
    return (beside / package).exists() or importlib.util.find_spec(package) is not None
