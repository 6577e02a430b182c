"""The pocket loop's parts as real processes on free ports of loopback; all end with their test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atropos_tui.monitor.supervisor import ChildProcess, start_process
from atropos_tui.pocket.threads import use_one_blas_thread

use_one_blas_thread()

Start = Callable[..., ChildProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a module of ours as a process that says when it is ready."""
    started: list[ChildProcess] = []

    def start_module(module: str, *arguments: str) -> ChildProcess:
        child = start_process(
            [sys.executable, "-m", module], arguments, log_path=tmp_path / f"{module}-{len(started)}.log"
        )
        started.append(child)
        return child

    yield start_module
    for child in reversed(started):
        child.terminate()


@pytest.fixture(scope="module")
def policy_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an inference server that a whole test file shares."""
    command = [sys.executable, "-m", "atropos_tui.pocket.server"]
    log_path = tmp_path_factory.mktemp("policy") / "server.log"
    with start_process(command, ["--port", "0"], log_path=log_path) as server:
        yield str(server.ready["url"])
