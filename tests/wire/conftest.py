"""Upstream's own interpreter, and processes of both sides on free ports of loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atropos_tui.monitor.supervisor import ChildProcess, start_process
from tests.ports import held_port

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def upstream_python() -> str:
    """The interpreter of an environment that has atroposlib 0.4.0 installed; `.ci/run` makes one."""
    python = os.environ.get("ATROPOS_UPSTREAM_PYTHON", str(ROOT / ".cache/upstream-venv/bin/python"))
    if Path(python).exists():
        return python
    if os.environ.get("CI"):
        pytest.fail(f"there is no {python}")
    pytest.skip("needs atroposlib 0.4.0 in an environment of its own: see ATROPOS_UPSTREAM_PYTHON in .ci/run")


@pytest.fixture
def free_port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ChildProcess]]:
    """Starts a module of ours as a process that says when it is ready; all end with the test."""
    started: list[ChildProcess] = []

    def start_module(module: str, *arguments: str) -> ChildProcess:
        log_path = tmp_path / f"{module}.log"
        child = start_process([sys.executable, "-m", module], arguments, log_path=log_path)
        started.append(child)
        return child

    yield start_module
    for child in reversed(started):
        child.terminate()


@pytest.fixture
def start_upstream(upstream_python: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts upstream's interpreter with arguments; its processes end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start_python(*arguments: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
        with (tmp_path / f"upstream-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [upstream_python, *arguments], cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        started.append(process)
        return process

    yield start_python
    for process in started:
        process.kill()
        process.wait()
