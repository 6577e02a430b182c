"""Finding the environment class in a file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from atropos_tui.errors import UsageError
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.module_place import module_place

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv


def load_environment(spec: str) -> type[BaseEnv]:
    """The environment class of `FILE[:CLASS]`.

    The file runs as when it is imported, with its own directory first on the module path, so that it finds the files
    beside it. Raises UsageError for a missing file, a failing import, no class, or several without a choice.
    """
    path, wanted = split_spec(spec)
    classes = environment_classes(import_file(path))
    if wanted:
        if wanted not in classes:
            raise UsageError(f"{path} has no environment class {wanted!r}", _choices(path, classes))
        return classes[wanted]
    if not classes:
        raise UsageError(*_why_none(import_file(path), path))
    if len(classes) > 1:
        raise UsageError(f"{path} has {len(classes)} environment classes", _choices(path, classes))
    return next(iter(classes.values()))


def split_spec(spec: str) -> tuple[Path, str]:
    """Path and class name of `FILE[:CLASS]`. Raises UsageError when there is no such file."""
    path = Path(spec)
    wanted = ""
    if not path.exists() and ":" in spec:
        file, _, wanted = spec.rpartition(":")
        path = Path(file)
    if not path.is_file():
        raise UsageError(f"no file {path}", "give the path of an environment's Python file")
    return path.resolve(), wanted


def import_file(path: Path) -> ModuleType:
    """The module of a Python file, run now if it has not been."""
    if path.suffix != ".py":
        raise UsageError(f"{path} is not a Python file", "give the path of an environment's Python file")
    place = module_place(path)
    known = sys.modules.get(place.name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    first, *others = map(str, place.folders)
    sys.path[:] = [first, *(entry for entry in sys.path if entry != first), *(set(others) - set(sys.path))]
    try:
        return importlib.import_module(place.name) if place.in_package else _run_file(path)
    except (Exception, SystemExit) as error:
        raise UsageError(f"importing {path} failed: {describe(error)}{_place(error, path)}", "mend the file") from error


def _run_file(path: Path) -> ModuleType:
    name = path.stem
    # The plain name lets worker processes of the environment import it; unless that name is another module's.
    if name in sys.modules or not name.isidentifier() or _origin(name) != str(path):
        name = f"atropos_environment_{''.join(letter if letter.isalnum() else '_' for letter in path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _origin(name: str) -> str | None:
    """The file that the import of this name would run."""
    spec = importlib.util.find_spec(name)
    return spec.origin if spec is not None else None


def environment_classes(module: ModuleType) -> dict[str, type[BaseEnv]]:
    """The environments a file defines, in order; those that it only imports if it defines none itself."""
    from atropos_tui.runtime.base_env import BaseEnv

    found = {
        name: member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, BaseEnv) and member is not BaseEnv
        if not inspect.isabstract(member)
    }
    own = {name: member for name, member in found.items() if member.__module__ == module.__name__}
    return own or found


def _why_none(module: ModuleType, path: Path) -> tuple[str, str]:
    """Fault and remedy: a class that lacks methods is told by its name."""
    for name, member in vars(module).items():
        if inspect.isclass(member) and member.__module__ == module.__name__ and inspect.isabstract(member):
            missing = " and ".join(sorted(getattr(member, "__abstractmethods__", ())))
            return f"{path}: {name} lacks {missing}", "define them in the class"
    return f"{path} has no environment class", "define a subclass of BaseEnv in it"


def _choices(path: Path, classes: dict[str, type[BaseEnv]]) -> str:
    if not classes:
        return "define a subclass of BaseEnv in it"
    return "choose one: " + ", ".join(f"{path.name}:{name}" for name in classes)


def _place(error: BaseException, path: Path) -> str:
    """The last line of the file that took part in the failure."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f" (line {error.lineno})"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""
