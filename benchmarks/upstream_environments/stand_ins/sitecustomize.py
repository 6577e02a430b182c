"""Imported by Python at its start when this folder is on PYTHONPATH: patches what needs the network or draws at random.

`datasets.load_dataset` gives made-up rows, `AutoTokenizer.from_pretrained` the tokenizer of $STAND_IN_TOKENIZER for a
name that is no directory, and the random generators are seeded anew for every item, with its number, so that both sides
draw the same. With $STAND_IN_OLD_TEMPLATES `apply_chat_template` gives ids as before transformers 5, without which
atroposlib 0.4.0 makes no tokens at all.
"""

import functools
import importlib.abc
import importlib.util
import inspect
import os
import random
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

SEEDED_METHODS = ("setup", "get_next_item", "collect_trajectories", "evaluate")


def patch_datasets(module: ModuleType) -> None:
    from stand_in_rows import rows_of

    def load_dataset(path: str | None = None, name: str | None = None, *_: Any, split: Any = None, **words: Any) -> Any:
        data = module.Dataset.from_list(rows_of(str(path)))
        if split is None:
            return module.DatasetDict(dict.fromkeys(("train", "test", "validation"), data))
        return data.to_iterable_dataset() if words.get("streaming") else data

    module.load_dataset = load_dataset
    module.get_dataset_config_names = lambda *_, **__: ["default"]


def patch_auto_tokenizer(module: ModuleType) -> None:
    local = module.AutoTokenizer.from_pretrained.__func__

    def from_pretrained(cls: type, name: str, *arguments: Any, **words: Any) -> Any:
        if os.path.isdir(str(name)):
            return local(cls, name, *arguments, **words)
        return local(cls, os.environ["STAND_IN_TOKENIZER"])

    module.AutoTokenizer.from_pretrained = classmethod(from_pretrained)


def patch_templates(module: ModuleType) -> None:
    if not os.environ.get("STAND_IN_OLD_TEMPLATES"):
        return
    template = module.PreTrainedTokenizerBase.apply_chat_template

    def apply_chat_template(self: Any, *arguments: Any, **words: Any) -> Any:
        return template(self, *arguments, **({"return_dict": False} | words))

    module.PreTrainedTokenizerBase.apply_chat_template = apply_chat_template


def patch_base_env(module: ModuleType) -> None:
    def init_subclass(cls: type, **words: Any) -> None:
        super(module.BaseEnv, cls).__init_subclass__(**words)
        for name in SEEDED_METHODS:
            if name in vars(cls):
                setattr(cls, name, seeded(vars(cls)[name]))

    module.BaseEnv.__init_subclass__ = classmethod(init_subclass)


def seeded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which seeds the random generators with the number of the call."""
    calls = 0

    def seed() -> None:
        nonlocal calls
        random.seed(calls)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(calls)
        calls += 1

    @functools.wraps(method)
    async def awaited(*arguments: Any, **words: Any) -> Any:
        seed()
        return await method(*arguments, **words)

    @functools.wraps(method)
    def called(*arguments: Any, **words: Any) -> Any:
        seed()
        return method(*arguments, **words)

    return awaited if inspect.iscoroutinefunction(method) else called


PATCHES = {
    "datasets": patch_datasets,
    "transformers.models.auto.tokenization_auto": patch_auto_tokenizer,
    "transformers.tokenization_utils_base": patch_templates,
    "atroposlib.envs.base": patch_base_env,
    "atropos_tui.runtime.base_env": patch_base_env,
}


class PatchingFinder(importlib.abc.MetaPathFinder):
    """Patches each module of PATCHES when it has been executed."""

    def __init__(self) -> None:
        self._looking_for: set[str] = set()

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in PATCHES or name in self._looking_for:
            return None
        self._looking_for.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking_for.discard(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # Our `atroposlib.envs.base` has no names of its own: it shows modules that are patched themselves.
            if name != "atroposlib.envs.base" or "BaseEnv" in vars(module):
                PATCHES[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, PatchingFinder())
