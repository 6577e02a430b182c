"""Scripts and modules written for atroposlib run as they are, with its flags."""

from __future__ import annotations

import json
from pathlib import Path

from tests.compat.conftest import AUTHOR_FILES, Run, small_tokenizer


def run_env(python: Run, name: str, mode: str, tokenizer: Path, *flags: str):
    return python(
        "-m", "atropos_tui", "run", AUTHOR_FILES / name, mode, "--testing", "true", "--slurm=false",
        "--env.tokenizer_name", tokenizer, "--openai.model_name", tokenizer, *flags,
        WANDB_MODE="disabled",
    )  # fmt: skip


def test_an_environment_file_processes_groups(python: Run, tokenizer_dir: Path, tmp_path: Path):
    told = run_env(
        python, "bare_config_env.py", "process", tokenizer_dir, "--env.total_steps", "2", "--env.use_wandb", "false",
        "--env.data_path_to_save_groups", "out/groups.jsonl",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    groups = [json.loads(line) for line in (tmp_path / "out" / "groups.jsonl").read_text().splitlines()]
    assert [group["scores"] for group in groups] == [[0.0, 1.0]] * 2
    assert groups[0]["messages"][0][-1] == {"role": "assistant", "content": "2"}


def test_an_evaluation_with_odd_parameters_finds_its_data_in_the_working_directory(
    python: Run, tokenizer_dir: Path, tmp_path: Path
):
    (tmp_path / "words.json").write_text('["one", "two"]')
    told = run_env(
        python, "odd_init_eval.py", "evaluate", tokenizer_dir, "--env.data_dir_to_save_evals", "results",
        "--env.use_wandb", "false",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    results = json.loads((tmp_path / "results" / "metrics.json").read_text())["results"]
    assert results["all"] == results["atropos|words_eval|0"] == {"eval/answered": 1.0}


def test_a_teacher_is_asked_about_every_group(python: Run, tokenizer_dir: Path, tmp_path: Path):
    told = run_env(
        python, "teacher_env.py", "process", tokenizer_dir, "--env.total_steps", "1", "--env.use_wandb", "false",
        "--env.data_path_to_save_groups", "groups.jsonl", "--teacher.model_name", tokenizer_dir,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    (line,) = (tmp_path / "groups.jsonl").read_text().splitlines()
    group = json.loads(line)
    assert group["distill_token_ids"] == [[[token] for token in tokens] for tokens in group["tokens"]]
    assert group["distill_logprobs"] == [[[-1.0] for _ in tokens] for tokens in group["tokens"]]


def test_a_teacher_with_another_vocabulary_is_refused(python: Run, tokenizer_dir: Path, tmp_path: Path):
    small_tokenizer(tmp_path / "other", extra="é")
    told = run_env(
        python, "teacher_env.py", "process", tokenizer_dir, "--env.use_wandb", "false",
        "--teacher.model_name", tmp_path / "other",
    )  # fmt: skip
    assert told.returncode == 2
    assert "has another vocabulary" in told.stderr


def test_a_script_gets_its_arguments_and_the_modules_beside_it(python: Run, tmp_path: Path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text("import atroposlib.envs.base as base\n")
    (tmp_path / "scripts" / "main.py").write_text(
        "import sys, beside\nprint(__name__, sys.argv, beside.base.BaseEnv.__module__)\nsys.exit(3)\n"
    )
    told = python("-m", "atropos_tui", "run", "scripts/main.py", "--flag", "value")
    assert told.stdout == "__main__ ['scripts/main.py', '--flag', 'value'] atropos_tui.runtime.base_env\n", told.stderr
    assert told.returncode == 3


def test_a_script_may_import_from_the_package_that_its_folder_is(python: Run, tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "words.py").write_text("WORD = 'here'\n")
    (tmp_path / "project" / "main.py").write_text(
        "import sys\nfrom project.words import WORD\nfrom .words import WORD as SAME\nprint(__name__, WORD is SAME)\n"
    )
    told = python("-m", "atropos_tui", "run", "project/main.py")
    assert told.stdout == "__main__ True\n", told.stderr


def test_modules_run_as_with_python_m(python: Run):
    told = python("-m", "atropos_tui", "run", "-m", "atroposlib.cli.run_api", "--reload", "--port", "99999")
    assert told.returncode == 2
    assert "99999" in told.stderr


def test_a_script_that_is_not_there_is_wrong_use(python: Run):
    told = python("-m", "atropos_tui", "run", "nothing.py")
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "no file nothing.py" in told.stderr
