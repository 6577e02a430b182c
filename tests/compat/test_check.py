"""`atropos-tui check` says what a file is and needs, without running it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.verbs.check import check_files, inspect_in_process, lines_of, markdown_row, text_of
from tests.compat.conftest import AUTHOR_FILES


def test_a_file_that_loads_is_described():
    seen = inspect_in_process(str(AUTHOR_FILES / "needy_env.py"))
    assert seen.error == ""
    assert (seen.environment, seen.config, seen.config_fields) == ("NeedyEnv", "BaseEnvConfig", ())
    assert seen.servers == ("openai a at http://host0/v1", "openai a at http://host1/v1")
    assert seen.missing_packages[0] == "no_such_package_of_anybody"
    assert (seen.data_sets, seen.missing_keys, seen.uses_gpu) == (("somebody/rows",), ("NEEDY_JUDGE_API_KEY",), True)
    assert seen.overrides == ("process_manager", "_send_scored_data_to_api")


def test_config_classes_are_found_under_other_names():
    seen = inspect_in_process(str(AUTHOR_FILES / "odd_init_eval.py"))
    assert (seen.config, seen.config_fields) == ("WordsConfig", ("words_file",))
    assert len(seen.servers) == 4


def test_a_bare_server_config_is_one_server():
    assert inspect_in_process(str(AUTHOR_FILES / "bare_config_env.py")).servers == (
        "openai small at http://localhost:9123/v1",
    )


def test_a_file_may_import_from_the_package_that_its_folder_is():
    assert inspect_in_process(str(AUTHOR_FILES / "team" / "words_env.py")).environment == "WordsEnv"


def test_files_that_do_not_load_say_why_and_decide_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "500")
    (tmp_path / "broken.py").write_text("import no_such_package_of_anybody\n")
    (tmp_path / "leaves.py").write_text("import os\nos._exit(7)\n")
    good = str(AUTHOR_FILES / "bare_config_env.py")
    assert check_files([good, str(tmp_path / "broken.py"), str(tmp_path / "leaves.py")]) == 1
    told = capsys.readouterr().out
    assert "No module named 'no_such_package_of_anybody' (line 1)" in told
    assert "the import ended the process with status 7" in told
    assert told.endswith("1 of 3 files load\n")
    assert check_files([good]) == 0


def test_each_form_tells_of_every_file_also_of_one_that_does_not_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "broken.py").write_text("import no_such_package_of_anybody\n")
    files = [str(AUTHOR_FILES / "needy_env.py"), str(tmp_path / "broken.py")]
    assert check_files(files, form="json") == 1
    needy, broken = map(json.loads, capsys.readouterr().out.splitlines())
    assert (needy["loads"], needy["environment"], needy["overrides"]) == (
        True,
        "NeedyEnv",
        ["process_manager", "_send_scored_data_to_api"],
    )
    assert (broken["loads"], broken["missing_packages"]) == (False, ["no_such_package_of_anybody"])
    assert check_files(files, form="markdown") == 1
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [len(row) for row in (rows[0], *rows[2:])] == [7, 7, 7]
    assert rows[2][-1].startswith("process_manager")


def test_a_file_that_is_not_there_is_wrong_use(tmp_path: Path):
    with pytest.raises(UsageError, match="no file"):
        check_files([str(tmp_path / "nothing.py")])


def test_an_import_without_end_is_ended(tmp_path: Path):
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(600)\n")
    assert "took longer than 3 s" in inspect_in_process(str(tmp_path / "endless.py"), seconds=3).error


def test_the_table_has_no_empty_rows_and_survives_bars():
    seen = inspect_in_process(str(AUTHOR_FILES / "needy_env.py")).model_copy(update={"error": "a|b\nc"})
    assert [line.split()[0] for line in list(lines_of(seen))[1:]] == [
        "class", "servers", "missing", "needs", "differs", "error",
    ]  # fmt: skip
    assert markdown_row(seen).count("\n") == 1
    assert "a\\|b c" in markdown_row(seen)


def test_long_lines_are_broken_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    seen = inspect_in_process(str(AUTHOR_FILES / "bare_config_env.py"))
    lines = text_of(seen.model_copy(update={"config_fields": tuple(f"field_{n}" for n in range(20))})).splitlines()
    assert max(map(len, lines[1:])) <= 60
    assert next(line for line in lines if "field_19" in line).startswith(" " * 11 + "field_")
