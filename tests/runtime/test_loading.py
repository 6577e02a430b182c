"""The environment class of a file is found, and what is wrong with the file is told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.runtime.loading import load_environment

ONE = """
from atropos_tui import BaseEnv

class {name}(BaseEnv):
    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        return None
"""


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", "") and "pytest" in str(sys.modules[name].__file__):
            del sys.modules[name]
    sys.path[:] = path


def write(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_the_only_class_of_a_file_needs_no_name(tmp_path: Path):
    path = write(tmp_path, "reverse_env.py", ONE.format(name="Reverse"))
    assert load_environment(path).__name__ == "Reverse"
    assert load_environment(path) is load_environment(f"{path}:Reverse")


def test_one_of_several_classes_is_chosen_by_name(tmp_path: Path):
    path = write(tmp_path, "two_envs.py", ONE.format(name="First") + ONE.format(name="Second"))
    assert load_environment(f"{path}:Second").__name__ == "Second"
    with pytest.raises(UsageError, match=r"two_envs\.py has 2 environment classes; choose one: two_envs\.py:First, "):
        load_environment(path)
    with pytest.raises(UsageError, match=r"no environment class 'Third'; choose one: two_envs\.py:First"):
        load_environment(f"{path}:Third")


def test_classes_that_are_only_imported_or_abstract_are_no_choice(tmp_path: Path):
    write(tmp_path, "shared_base_env.py", ONE.format(name="Shared"))
    path = write(
        tmp_path,
        "derived_env.py",
        "from shared_base_env import Shared\n" + ONE.format(name="Abstract").split("    async def evaluate")[0]
        + "\nclass Mine(Shared):\n    pass\n",
    )  # fmt: skip
    assert load_environment(path).__name__ == "Mine"


def test_the_main_part_of_a_file_does_not_run(tmp_path: Path):
    path = write(tmp_path, "main_env.py", ONE.format(name="E") + "\nif __name__ == '__main__':\n    E.cli()\n")
    assert load_environment(path).__name__ == "E"


def test_a_file_may_be_called_like_a_module_that_exists(tmp_path: Path):
    path = write(tmp_path, "json.py", ONE.format(name="Json"))
    import json

    assert load_environment(path).__name__ == "Json"
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", ["has no environment class", "subclass of BaseEnv"]),
        ("import nothing_of_this_name\n", ["ModuleNotFoundError", "nothing_of_this_name", "line 1"]),
        ("\n\nraise ValueError('a\\nb')\n", ["ValueError: a b", "line 3"]),
        ("\ndef f(:\n", ["SyntaxError", "line 2"]),
        ("import sys\nsys.exit(3)\n", ["SystemExit: 3", "line 2"]),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, text: str, words: list[str]):
    path = write(tmp_path, "unusable_env.py", text)
    with pytest.raises(UsageError) as raised:
        load_environment(path)
    told = str(raised.value)
    assert "\n" not in told
    assert all(word in told for word in ["unusable_env.py", *words]), told


def test_a_missing_file_is_told(tmp_path: Path):
    for spec in (str(tmp_path / "none.py"), f"{tmp_path / 'none.py'}:Env", str(tmp_path)):
        with pytest.raises(UsageError, match="no file"):
            load_environment(spec)


def test_a_file_that_is_not_python_is_told(tmp_path: Path):
    path = write(tmp_path, "env.txt", "class E: pass")
    with pytest.raises(UsageError, match="is not a Python file"):
        load_environment(path)
