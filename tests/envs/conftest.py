"""Example environments that serve a trajectory API with groups of a model at command, all over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from atropos_tui import BaseEnv
from atropos_tui.ledger import GroupContent, Outcome
from atropos_tui.ledger.events import GroupMove
from atropos_tui.runtime.loading import import_file
from atropos_tui.shipped import shipped_directory
from tests.runtime.serving_parts import FakeTrajectoryApi, make_tokenizer, serving, until, watched

PATIENCE = 60.0


def environment_module(name: str) -> ModuleType:
    return import_file(shipped_directory("envs") / f"{name}.py")


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="session")
def tokenizer(tokenizer_dir: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tokenizer_dir)


@pytest.fixture
def api() -> Iterator[FakeTrajectoryApi]:
    server = FakeTrajectoryApi().start()
    yield server
    server.stop()


@pytest.fixture
def make_env(tokenizer_dir: Path, api: FakeTrajectoryApi) -> Callable[..., Any]:
    """An environment of a class at a model's URL, with any config fields."""

    def make(kind: type[BaseEnv], url: str, **fields: Any) -> Any:
        defaults, servers = kind.config_init()
        assert isinstance(servers, list)
        changes = {
            "tokenizer_name": str(tokenizer_dir), "rollout_server_url": api.url, "steps_per_eval": 0, "group_size": 4,
            "max_num_workers": 4, "max_token_length": 20_000, "use_wandb": False, **fields,
        }  # fmt: skip
        config = type(defaults)(**{**defaults.model_dump(), **changes})
        api.max_token_len = 20_000
        return kind(config, [server.model_copy(update={"base_url": url}) for server in servers])

    return make


@dataclass(frozen=True)
class Served:
    """What became of the groups of a run, by number, what of them was sent, and each server with its last health."""

    ends: dict[int, GroupMove]
    contents: dict[int, GroupContent]
    sent: list[dict[str, Any]]
    servers: dict[int, tuple[str, bool | None]]

    def outcomes(self) -> dict[str, int]:
        """How many groups ended how: `delivered`, `skipped identical_scores` …"""
        counts: dict[str, int] = {}
        for end in self.ends.values():
            word = end.outcome if end.outcome is Outcome.DELIVERED else f"{end.outcome} {end.reason_word}"
            counts[str(word)] = counts.get(str(word), 0) + 1
        return counts

    def delivered(self) -> list[GroupContent]:
        return [self.contents[number] for number, end in self.ends.items() if end.outcome is Outcome.DELIVERED]


async def serve_groups(env: Any, api: FakeTrajectoryApi, count: int) -> Served:
    """Serve exactly so many groups to their ends."""
    seen = watched(env)
    next_item, given = env.get_next_item, 0

    async def next_item_if_any() -> Any:
        nonlocal given
        given += 1
        return await next_item() if given <= count else None

    env.get_next_item = next_item_if_any

    def ends() -> dict[int, GroupMove]:
        moves = [event for event in list(seen.events) if isinstance(event, GroupMove)]
        return {move.group_id: move for move in moves if move.outcome is not Outcome.IN_OUTBOX}

    async with serving(env) as task:
        await until(lambda: task.done() or len(ends()) >= count, f"{count} groups", patience=PATIENCE)
        if task.done():
            task.result()
    assert env._runtime.stream.counts().balanced
    contents = {content.group_id: content for content in seen.contents}
    servers = {event.server: (event.url, event.healthy) for event in seen.of("server_health")}
    return Served(ends(), contents, api.groups, servers)
