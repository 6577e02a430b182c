"""Clients of inference servers: configs, the servers themselves, and managed servers that track what was sampled."""

from atropos_tui.inference.config import APIServerConfig, ReasoningConfig, ServerBaseline, ServerManagerConfig
from atropos_tui.inference.dummy_managed_server import DummyManagedServer
from atropos_tui.inference.managed_server import ManagedServer
from atropos_tui.inference.managed_server_adapter import ManagedServerAdapter
from atropos_tui.inference.openai_server import OpenAIServer
from atropos_tui.inference.sequence import SequenceNode
from atropos_tui.inference.server import APIServer
from atropos_tui.inference.server_harness import ServerHarness
from atropos_tui.inference.server_manager import ServerManager
from atropos_tui.inference.sglang_server import SGLangServer
from atropos_tui.inference.trl_server import TrlVllmServer
from atropos_tui.inference.vllm_server import VLLMServer

__all__ = [
    "APIServer",
    "APIServerConfig",
    "DummyManagedServer",
    "ManagedServer",
    "ManagedServerAdapter",
    "OpenAIServer",
    "ReasoningConfig",
    "SGLangServer",
    "SequenceNode",
    "ServerBaseline",
    "ServerHarness",
    "ServerManager",
    "ServerManagerConfig",
    "TrlVllmServer",
    "VLLMServer",
]
