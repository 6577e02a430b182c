"""The server in the test's own process, and as processes of its own on free ports of loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from atropos_tui.monitor.supervisor import ChildProcess, start_process
from atropos_tui.trajectory_api.app import Settings, TrajectoryApi, create_app
from tests.trajectory_api.bodies import environment, registration

ROOT = Path(__file__).resolve().parents[2]


class Api(httpx.AsyncClient):
    """A client of a server in this process, with the steps that most tests begin with."""

    def __init__(self, app: TrajectoryApi) -> None:
        super().__init__(transport=httpx.ASGITransport(app), base_url="http://api")
        self.app = app

    async def start_run(self, **changes: object) -> None:
        """Register a trainer and let it ask once, so that environments may register."""
        assert (await self.post("/register", json=registration(**changes))).status_code == 200
        await self.get("/batch")

    async def register_env(self, **changes: object) -> int:
        answer = (await self.post("/register-env", json=environment(**changes))).json()
        assert answer["status"] == "success", answer
        return int(answer["env_id"])


@pytest.fixture
async def make_api() -> AsyncIterator[Callable[..., Api]]:
    """Makes clients of servers with other settings than the default; all end with the test."""
    made: list[Api] = []

    def make(**settings: object) -> Api:
        made.append(Api(create_app(Settings(**settings))))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for api in made:
        await api.aclose()
        api.app.close()


@pytest.fixture
def api(make_api: Callable[..., Api]) -> Api:
    return make_api()


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., ChildProcess]]:
    """Starts the server as a process; its address is `ready["url"]`. All end with the test."""
    started: list[ChildProcess] = []

    def start(*flags: str) -> ChildProcess:
        command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0"]
        started.append(start_process(command, flags, log_path=tmp_path / "api.log"))
        return started[-1]

    yield start
    for child in reversed(started):
        child.terminate()


@pytest.fixture(scope="session")
def upstream_python() -> str:
    """The interpreter of an environment that has atroposlib 0.4.0 installed; `.ci/run` makes one."""
    python = os.environ.get("ATROPOS_UPSTREAM_PYTHON", str(ROOT / ".cache/upstream-venv/bin/python"))
    if Path(python).exists():
        return python
    if os.environ.get("CI"):
        pytest.fail(f"there is no {python}")
    pytest.skip("needs atroposlib 0.4.0 in an environment of its own: see ATROPOS_UPSTREAM_PYTHON in .ci/run")
