"""What the source of an environment file tells without running it: imports, data sets, keys, GPUs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KEY_ENDINGS = ("_KEY", "_TOKEN", "_SECRET")


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Names in order of appearance. A data set that is named by an expression is shown as that expression."""

    imports: tuple[str, ...]
    data_sets: tuple[str, ...]
    keys: tuple[str, ...]
    uses_gpu: bool


def source_facts(path: Path) -> SourceFacts:
    """Read one file, and those beside it that it imports. Raises SyntaxError and OSError."""
    trees = list(_trees(path))
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return SourceFacts(
        imports=_unique(name for node in nodes for name in _imported(node)),
        data_sets=_unique(name for node in nodes for name in _data_set(node)),
        keys=_unique(name for node in nodes for name in _key(node)),
        uses_gpu=any(_is_gpu(node) for node in nodes),
    )


def _trees(path: Path) -> Iterator[ast.Module]:
    """The file's syntax tree, then those of its siblings, each once."""
    waiting, seen = [path], {path}
    while waiting:
        file = waiting.pop(0)
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        yield tree
        for name in (name for node in ast.walk(tree) for name in _imported(node)):
            sibling = path.parent / f"{name}.py"
            if sibling not in seen and sibling.is_file():
                seen.add(sibling)
                waiting.append(sibling)


def _imported(node: ast.AST) -> Iterator[str]:
    """Top-level names of packages that are not Python's own."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [node.module or ""]
    else:
        return
    for name in names:
        top = name.partition(".")[0]
        if top and top not in sys.stdlib_module_names and top != "atroposlib":
            yield top


def _data_set(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _last_name(node.func) in ("load_dataset", "load_from_disk"):
        named = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "path")]
        for argument in named[:1]:
            yield str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)


def _key(node: ast.AST) -> Iterator[str]:
    """Environment variables whose name says that they are secret."""
    if isinstance(node, ast.Call) and _last_name(node.func) in ("getenv", "get") and node.args:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = node.args[0] if owner is not None and _last_name(owner) in ("os", "environ") else None
    elif isinstance(node, ast.Subscript) and _last_name(node.value) == "environ":
        name = node.slice
    else:
        return
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.endswith(_KEY_ENDINGS):
        yield name.value


def _is_gpu(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "cuda"
    if isinstance(node, ast.Call):
        words = [*node.args, *(word.value for word in node.keywords)]
        return _last_name(node.func) in ("to", "device") and any(
            isinstance(word, ast.Constant) and str(word.value).startswith("cuda") for word in words
        )
    return False


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _unique(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
