"""All inference servers of an environment behind one: requests go to the least loaded server that is up."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from atropos_tui.errors import UsageError
from atropos_tui.inference.config import APIServerConfig, ReasoningConfig, ServerBaseline
from atropos_tui.inference.decoding import Detokenizer
from atropos_tui.inference.dummy_managed_server import DummyManagedServer
from atropos_tui.inference.managed_server import ManagedServer
from atropos_tui.inference.openai_server import OpenAIServer
from atropos_tui.inference.pool import ServerPool, no_server, run_all
from atropos_tui.inference.results import CHAT, COMPLETION, LOGPROBS, TOKENS, Operation, R, TokenCompletion
from atropos_tui.inference.server import APIServer
from atropos_tui.inference.server_harness import ServerHarness
from atropos_tui.inference.sglang_server import SGLangServer
from atropos_tui.inference.slurm import LOCAL_URLS, slurm_urls
from atropos_tui.inference.trl_server import TrlVllmServer
from atropos_tui.inference.vllm_server import VLLMServer
from atropos_tui.ledger import EventStream

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

SERVER_CLASSES: dict[str, type[APIServer]] = {
    "openai": OpenAIServer, "trl": TrlVllmServer, "sglang": SGLangServer, "vllm": VLLMServer,
}  # fmt: skip

logger = logging.getLogger(__name__)


class ServerManager:
    """The servers of `configs`: a list, one `APIServerConfig`, or a `ServerBaseline` for servers that are found by
    convention (local ports 9004-9007, or the nodes of the SLURM job).

    Each server is of its own `server_type` unless `server_class` names a class. `slurm` copies the first config to all
    nodes of the job. `testing` replaces the servers by an offline stand-in.
    """

    def __init__(
        self,
        configs: ServerBaseline | Sequence[APIServerConfig],
        server_class: type[APIServer] = APIServer,
        slurm: bool = False,
        testing: bool = False,
        max_n_completions: int = 8,
        reasoning_config: ReasoningConfig | None = None,
        proxy_url: str | None = None,
        use_proxy: bool = False,
        tool_parser: str | None = None,
    ) -> None:
        self.max_n_completions = max_n_completions
        self.reasoning_config = reasoning_config
        self.proxy_url = proxy_url or os.environ.get("ATROPOS_PROXY_URL")
        self.use_proxy = use_proxy or bool(self.proxy_url)
        self.tool_parser = tool_parser
        # Of the last managed server: the next one has the same tokenizer.
        self._detokenizer: Detokenizer | None = None
        if testing:
            self.servers = [ServerHarness(_first_config(configs), reasoning_config)]
        else:
            self.servers = [
                _class_of(config, server_class)(config, reasoning_config=reasoning_config)
                for config in resolved_configs(configs, slurm)
            ]

    @property
    def servers(self) -> list[APIServer]:
        return self._servers

    @servers.setter
    def servers(self, servers: Sequence[APIServer]) -> None:
        self._servers = list(servers)
        self._pool = ServerPool(self._servers)

    def attach(self, stream: EventStream) -> None:
        """Publish the servers' health and every request to this stream from now on.

        A manager that was never attached joins the run in whose code it is first called.
        """
        self._pool.attach(stream)

    async def close(self) -> None:
        """End health probes and close connections. Requests after this open new ones."""
        await self._pool.close()

    @property
    def unhealthy_detail(self) -> str:
        """What is wrong, in words, while no server is usable; empty while one is, or nothing is known yet."""
        return self._pool.down_detail

    async def update_weight(self, weight: float) -> None:
        """Scale all limits to this environment's share of the batch, between 0 and 1."""
        for server in self._servers:
            await server.update_weight(weight)

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        """Chat with OpenAI's arguments, `split` ("train" or "eval") and `skip_reasoning`. Raises InferenceError."""
        answer: ChatCompletion = await self._complete(CHAT, kwargs)
        return answer

    async def completion(self, **kwargs: Any) -> Completion:
        """Completion of `prompt` with OpenAI's arguments, plus `split`. Raises InferenceError."""
        answer: Completion = await self._complete(COMPLETION, kwargs)
        return answer

    async def tokens_and_logprobs_completion(self, **kwargs: Any) -> TokenCompletion:
        """Completion of `prompt` or `input_ids` as token ids with logprobs. Raises InferenceError."""
        return await self._complete(TOKENS, kwargs)

    async def get_logprobs(self, **kwargs: Any) -> dict[str, Any]:
        """Logprobs of a prompt's tokens; see `APIServer.get_logprobs`."""
        return await self._pool.complete(LOGPROBS, kwargs)

    @asynccontextmanager
    async def dedicated_server(self) -> AsyncIterator[APIServer]:
        """The least loaded server for several requests in a row; it counts as busier as long as it is held."""
        server = self._reserve_any()
        try:
            yield server
        finally:
            self.unreserve(server)

    @asynccontextmanager
    async def managed_server(
        self, tokenizer: Any = None, base_url: str | None = None, preserve_think_blocks: bool = True
    ) -> AsyncIterator[Any]:
        """A `ManagedServer` on one server, which it keeps for all its requests; its sequences are forgotten at the end.

        `base_url` asks for that server, if there is one of this address. With a proxy configured it is a
        `ProxyManagedServer`. On a plain OpenAI server, which gives no token ids, it is a `DummyManagedServer` if the
        variable ATROPOS_ALLOW_DUMMY_MANAGED_SERVER is set. Raises NotImplementedError if it is not.
        """
        if self.use_proxy:
            async with self._proxy_session(base_url) as proxied:
                yield proxied
            return
        server = self.reserve(base_url) or self._reserve_any()
        try:
            managed = self._managed(server, tokenizer, preserve_think_blocks)
            try:
                yield managed
            finally:
                managed.reset()
        finally:
            self.unreserve(server)

    def reserve(self, base_url: str | None = None) -> APIServer | None:
        """The server for a session of several requests, the least loaded or that of this address; it counts as busier
        until it is given to `unreserve`. None when no server has the address."""
        wanted = (base_url or "").rstrip("/")
        among = tuple(server for server in self._servers if wanted in ("", (server.config.base_url or "").rstrip("/")))
        return cast(APIServer, self._pool.queue.reserve(among)) if among else None

    def unreserve(self, server: APIServer) -> None:
        self._pool.queue.unreserve(server)

    def _reserve_any(self) -> APIServer:
        server = self.reserve()
        if server is None:
            raise no_server()
        return server

    async def _complete(self, operation: Operation[R], arguments: dict[str, Any]) -> R:
        """Spread a large n over several requests, so that several servers share it."""
        n = int(arguments.get("n") or 1)
        most = self.max_n_completions
        if n <= most:
            return await self._pool.complete(operation, arguments)
        parts = [most] * (n // most) + [n % most] * (n % most > 0)
        answers = await run_all([self._pool.complete(operation, {**arguments, "n": part}) for part in parts])
        return operation.merge(answers, n)

    def _managed(
        self, server: APIServer, tokenizer: Any, preserve_think_blocks: bool
    ) -> ManagedServer | DummyManagedServer:
        if not isinstance(server, OpenAIServer):
            managed = ManagedServer(
                server, tokenizer, tool_parser=self.tool_parser, preserve_think_blocks=preserve_think_blocks,
                detokenizer=self._detokenizer,
            )  # fmt: skip
            self._detokenizer = managed.detokenizer
            return managed
        if os.environ.get("ATROPOS_ALLOW_DUMMY_MANAGED_SERVER", "").lower() not in ("1", "true", "yes"):
            raise NotImplementedError(
                "OpenAI's API gives no token ids and logprobs, which managed_server() needs to track sequences; use "
                "server_type vllm or sglang, or, for evaluation only, set ATROPOS_ALLOW_DUMMY_MANAGED_SERVER=1 to get "
                "placeholders that nothing can be trained on"
            )
        logger.warning("managed_server() on an OpenAI server: tokens and logprobs are placeholders")
        return DummyManagedServer(server, tokenizer)

    @asynccontextmanager
    async def _proxy_session(self, base_url: str | None) -> AsyncIterator[Any]:
        from atropos_tui.inference.proxy_client import proxy_session

        if not self.proxy_url:
            raise UsageError("use_proxy needs the proxy's address", "give proxy_url or set ATROPOS_PROXY_URL")
        async with proxy_session(self.proxy_url, base_url, self.tool_parser or "hermes") as session:
            yield session


def resolved_configs(configs: ServerBaseline | Sequence[APIServerConfig], slurm: bool) -> list[APIServerConfig]:
    """One config a server."""
    if isinstance(configs, APIServerConfig) and configs.base_url:
        configs = [configs]
    if isinstance(configs, ServerBaseline):
        shared = configs.model_dump(include=set(ServerBaseline.model_fields))
        return [APIServerConfig(**shared, base_url=url, api_key="x") for url in slurm_urls() or LOCAL_URLS]
    urls = slurm_urls() if slurm and configs else []
    return [configs[0].model_copy(update={"base_url": url}) for url in urls] or list(configs)


def _first_config(configs: ServerBaseline | Sequence[APIServerConfig]) -> APIServerConfig:
    if isinstance(configs, APIServerConfig):
        return configs
    if isinstance(configs, ServerBaseline):
        return APIServerConfig(**configs.model_dump())
    return configs[0] if configs else APIServerConfig()


def _class_of(config: APIServerConfig, server_class: type[APIServer]) -> type[APIServer]:
    return SERVER_CLASSES[config.server_type] if inspect.isabstract(server_class) else server_class
