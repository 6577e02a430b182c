"""Runtime and terminal console for Atropos environments. The author's names are here, and load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atropos_tui.inference import (
        APIServer,
        APIServerConfig,
        DummyManagedServer,
        ManagedServer,
        ManagedServerAdapter,
        OpenAIServer,
        ReasoningConfig,
        SequenceNode,
        ServerBaseline,
        ServerManager,
        ServerManagerConfig,
        VLLMServer,
    )
    from atropos_tui.runtime.base_env import BaseEnv
    from atropos_tui.runtime.config import BaseEnvConfig, EvalHandlingEnum
    from atropos_tui.runtime.tokens import tokenize_for_trainer
    from atropos_tui.runtime.types import (
        AgentHistory,
        AgentStep,
        GameHistory,
        GameStep,
        Item,
        Message,
        Observation,
        ScoredDataGroup,
        ScoredDataItem,
        number,
    )

_HOMES = {
    "atropos_tui.inference": (
        "APIServer", "APIServerConfig", "DummyManagedServer", "ManagedServer", "ManagedServerAdapter", "OpenAIServer",
        "ReasoningConfig", "SequenceNode", "ServerBaseline", "ServerManager", "ServerManagerConfig", "VLLMServer",
    ),
    "atropos_tui.runtime.base_env": ("BaseEnv",),
    "atropos_tui.runtime.config": ("BaseEnvConfig", "EvalHandlingEnum"),
    "atropos_tui.runtime.tokens": ("tokenize_for_trainer",),
    "atropos_tui.runtime.types": (
        "AgentHistory", "AgentStep", "GameHistory", "GameStep", "Item", "Message", "Observation", "ScoredDataGroup",
        "ScoredDataItem", "number",
    ),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "APIServer",
    "APIServerConfig",
    "AgentHistory",
    "AgentStep",
    "BaseEnv",
    "BaseEnvConfig",
    "DummyManagedServer",
    "EvalHandlingEnum",
    "GameHistory",
    "GameStep",
    "Item",
    "ManagedServer",
    "ManagedServerAdapter",
    "Message",
    "Observation",
    "OpenAIServer",
    "ReasoningConfig",
    "ScoredDataGroup",
    "ScoredDataItem",
    "SequenceNode",
    "ServerBaseline",
    "ServerManager",
    "ServerManagerConfig",
    "VLLMServer",
    "number",
    "tokenize_for_trainer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
