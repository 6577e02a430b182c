"""A trajectory API with a trainer that takes nothing, a tokenizer, and runs that leave no process behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from atropos_tui.monitor.supervisor import start_process
from tests.end_to_end.marked_processes import MarkedProcesses
from tests.inference.small_tokenizer import small_tokenizer
from tests.verbs.served_runs import ServedRuns


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    small_tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def trajectory_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("api") / "log"
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0", "--no-journal"]
    with start_process(command, log_path=log) as api:
        registration = {
            "wandb_group": "g", "wandb_project": "p", "batch_size": 8, "max_token_len": 64, "checkpoint_dir": "",
            "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 100,
        }  # fmt: skip
        httpx.post(f"{api.ready['url']}/register", json=registration, timeout=60).raise_for_status()
        # The first request for a batch is the sign that the trainer has started.
        httpx.get(f"{api.ready['url']}/batch", timeout=60).raise_for_status()
        yield api.ready["url"]


@pytest.fixture
def runs(tmp_path: Path, tokenizer: Path, trajectory_api: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedRuns]:
    processes = MarkedProcesses()
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(tmp_path / "runs"))
    yield ServedRuns(tmp_path, processes, tokenizer, trajectory_api)
    for pid in processes.alive():
        os.kill(pid, signal.SIGKILL)
