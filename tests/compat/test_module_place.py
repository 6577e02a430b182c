"""A file is imported as what its own imports need it to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from atropos_tui.runtime.module_place import ModulePlace, module_place


@pytest.fixture
def write(tmp_path: Path):
    def write(path: str, text: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def test_a_file_without_relative_imports_stands_alone(write, tmp_path: Path):
    file = write("project_a/env.py", "import rules, json\n")
    assert module_place(file) == ModulePlace("env", (tmp_path / "project_a",))


def test_relative_imports_make_it_part_of_as_many_packages_as_they_reach(write, tmp_path: Path):
    file = write("project_b/games/env.py", "from .rules import a\nfrom ..tools import b\n")
    place = module_place(file)
    assert place == ModulePlace("project_b.games.env", (tmp_path, tmp_path / "project_b" / "games"))
    assert place.in_package


def test_a_file_named_like_its_folder_does_not_hide_the_package(write, tmp_path: Path):
    file = write("chess_env/chess_env.py", "from .rules import a\n")
    assert module_place(file) == ModulePlace("chess_env.chess_env", (tmp_path,))


def test_imports_by_the_name_of_a_folder_above_need_the_folder_over_it(write, tmp_path: Path):
    file = write("project_c/games/env.py", "from project_c.tools import a\nimport json\n")
    assert module_place(file) == ModulePlace("env", (tmp_path / "project_c" / "games", tmp_path))


@pytest.mark.parametrize("folder", ["v1.2", "json"])
def test_a_folder_whose_name_is_no_free_one_is_no_package(folder: str, write, tmp_path: Path):
    file = write(f"{folder}/env.py", "try:\n    from .rules import a\nexcept ImportError:\n    from rules import a\n")
    assert module_place(file) == ModulePlace("env", (tmp_path / folder,))


def test_a_file_that_cannot_be_parsed_is_left_to_its_importer(write, tmp_path: Path):
    assert module_place(write("project_d/env.py", "from . import (\n")) == ModulePlace("env", (tmp_path / "project_d",))
