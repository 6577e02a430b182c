"""Modules of `atroposlib` whose attributes are those of our own modules: read there, and patched there."""

from __future__ import annotations

import importlib.util
import opcode
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from atropos_tui.compat.module_path import WHAT_BRINGS_IT

_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


class ForwardingModule(ModuleType):
    """A module that shows the names of `_homes`, the first that has a name; `_renamed` gives some under another name.

    Setting or deleting a name does it in every home that has it, so that a patch reaches the code that uses the name.
    A name that no home has comes from the module's counterpart in an installed `atroposlib`.
    """

    _homes: tuple[ModuleType, ...]
    _renamed: Mapping[str, str]
    _deleted: dict[str, list[ModuleType]]

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self.__dir__()
        actual = self._renamed.get(name, name)
        for home in self._homes if not name.startswith("__") else ():
            if hasattr(home, actual):
                return getattr(home, actual)
        installed = None if name.startswith("__") else _installed_counterpart(self.__name__)
        if installed is not None and hasattr(installed, name):
            return getattr(installed, name)
        fault = f"atropos-tui has no {name} in {self.__name__}; {WHAT_BRINGS_IT}, if any does"
        # Only an import statement shows the words of an ImportError; everybody else expects an AttributeError.
        raise ImportError(fault, name=self.__name__) if _asked_by_import() else AttributeError(fault)

    def __setattr__(self, name: str, value: Any) -> None:
        homes = self._deleted.pop(name, None) or self._having(name)
        for home in homes:
            setattr(home, self._renamed.get(name, name), value)
        if not homes:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        homes = self._having(name)
        if not homes:
            super().__delattr__(name)
            return
        for home in homes:
            delattr(home, self._renamed.get(name, name))
        # `unittest.mock` deletes what it patched and then sets the original again, which belongs where it was.
        self._deleted[name] = homes

    def __dir__(self) -> list[str]:
        public = {name for home in self._homes for name in vars(home) if not name.startswith("_")}
        return sorted(public | set(self._renamed))

    def _having(self, name: str) -> list[ModuleType]:
        actual = self._renamed.get(name, name)
        return [home for home in self._homes if actual in vars(home)] if not name.startswith("__") else []


def forward(module: str, *homes: str, renamed: Mapping[str, str] | None = None) -> None:
    """Make a module, which is being imported, show the names of our modules `homes`."""
    shown = sys.modules[module]
    vars(shown).update(_homes=tuple(map(import_module, homes)), _renamed=renamed or {}, _deleted={})
    shown.__class__ = ForwardingModule


def _installed_counterpart(module: str) -> ModuleType | None:
    """The module of this name of an installed `atroposlib`; what it imports in its turn is ours where we have it."""
    package, _, name = module.rpartition(".")
    counterpart = f"{package}._installed_{name}"
    if counterpart in sys.modules:
        return sys.modules[counterpart]
    for file in _installed_files(package, name):
        spec = importlib.util.spec_from_file_location(counterpart, file)
        if spec is not None and spec.loader is not None:
            sys.modules[counterpart] = loaded = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(loaded)
            except BaseException:
                del sys.modules[counterpart]
                raise
            return loaded
    return None


def _installed_files(package: str, name: str) -> Iterator[Path]:
    for folder in list(sys.modules[package].__path__)[1:]:
        file = Path(folder) / f"{name}.py"
        if file.is_file():
            yield file


def _asked_by_import() -> bool:
    """Whether the caller's caller is at a `from … import` statement."""
    frame = sys._getframe(2)
    return frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
