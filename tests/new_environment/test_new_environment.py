"""What `new` writes runs as it stands: its own test, the linter and `check` find nothing wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from atropos_tui.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    assert main(["new", "my_task", "--directory", str(tmp_path)]) == 0
    return tmp_path


def run(directory: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_test_passes(written: Path) -> None:
    assert "2 passed" in run(written, "pytest", "-q", "-p", "no:cacheprovider", "test_my_task.py")


def test_it_is_as_tidy_as_our_own(written: Path) -> None:
    settings = str(ROOT / "pyproject.toml")
    # Which imports are the author's own depends on where the file lies.
    run(written, "ruff", "check", "--config", settings, "--ignore", "I001", ".")


def test_it_loads_and_says_what_it_needs(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(written / "my_task.py")]) == 0
    assert "MyTaskEnv" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["my-task", "class", "", "1st", "../up"])
def test_a_bad_name_is_refused_with_what_to_take(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--directory", str(tmp_path)]) == 2
    assert "small letters" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (written / "my_task.py").unlink()
    (written / "test_my_task.py").write_text("mine")
    assert main(["new", "my_task", "--directory", str(written)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (written / "test_my_task.py").read_text() == "mine"
    assert not (written / "my_task.py").exists()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "my_task", "--directory", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
