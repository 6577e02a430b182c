from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.runtime.config import BaseEnvConfig
from tests.ports import held_port
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, make_tokenizer


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on which nobody listens."""
    with held_port() as port:
        yield port


@pytest.fixture
def api() -> Iterator[FakeTrajectoryApi]:
    server = FakeTrajectoryApi().start()
    yield server
    server.stop()


@pytest.fixture
def make_env(tokenizer_dir: Path, api: FakeTrajectoryApi) -> Callable[..., ScriptedEnv]:
    """A scripted environment that serves the fake trajectory API, with any config fields."""

    def make(kind: type[ScriptedEnv] = ScriptedEnv, **fields: Any) -> ScriptedEnv:
        defaults: dict[str, Any] = {
            "tokenizer_name": str(tokenizer_dir),
            "rollout_server_url": api.url,
            "use_wandb": False,
            "group_size": 4,
            "max_num_workers": 3,
            "steps_per_eval": 0,
            "worker_timeout": 30,
        }
        return kind(BaseEnvConfig(**{**defaults, **fields}), [])

    return make
