"""What all inference servers have in common. A kind of server says how to send one request; the pool does the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

import httpx

from atropos_tui.inference.config import APIServerConfig, ReasoningConfig
from atropos_tui.inference.permits import Permits, Split
from atropos_tui.inference.pool import ServerPool
from atropos_tui.inference.results import CHAT, COMPLETION, LOGPROBS, TOKENS, Operation, TokenCompletion
from atropos_tui.inference.transport import Transport

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion


class APIServer(ABC):
    """One inference server.

    Subclasses implement the `_…_wrapper` methods: send one request with the given arguments, return its answer, raise
    `RequestError` (or any exception of httpx's that the transport raised) when there is none.
    """

    def __init__(self, config: APIServerConfig, reasoning_config: ReasoningConfig | None = None) -> None:
        # Takes half a second, which a running event loop must not be held up for when the first request is sent.
        import openai  # noqa: F401

        self.config = config
        self.reasoning_config = reasoning_config
        self.sem = Permits(config.num_max_requests_at_once)
        self.eval_sem = Permits(config.num_requests_for_eval)
        self.index = 0
        self.healthy: bool | None = None
        self.health_detail = ""
        self.in_doubt = False
        self.request_timings: deque[float] = deque(maxlen=config.rolling_buffer_length)
        self.attempts_list: deque[int] = deque(maxlen=config.rolling_buffer_length)
        self.eval_request_timings: deque[float] = deque(maxlen=config.rolling_buffer_length)
        self.eval_attempts_list: deque[int] = deque(maxlen=config.rolling_buffer_length)
        self.transport = Transport(config.base_url, config.api_key)
        self.pool = ServerPool([self])

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        """Chat with OpenAI's arguments, `split` ("train" or "eval") and `skip_reasoning`. Raises InferenceError."""
        answer: ChatCompletion = await self.pool.complete(CHAT, kwargs, [self])
        return answer

    async def completion(self, **kwargs: Any) -> Completion:
        """Completion of `prompt` with OpenAI's arguments, plus `split`. Raises InferenceError."""
        answer: Completion = await self.pool.complete(COMPLETION, kwargs, [self])
        return answer

    async def tokens_and_logprobs_completion(self, **kwargs: Any) -> TokenCompletion:
        """Completion of `prompt` or `input_ids` as token ids with logprobs. Raises InferenceError."""
        return await self.pool.complete(TOKENS, kwargs, [self])

    async def get_logprobs(self, **kwargs: Any) -> dict[str, Any]:
        """Logprobs of the tokens of `prompt` or `input_ids`, with the `top_k` best at each position.

        Gives `prompt_tokens` [position], `prompt_topk_token_ids` and `prompt_topk_logprobs` [position][k]; both are
        empty where the server tells nothing, as at the first position. vLLM and TRL add the token that stands there
        where it is none of the best, so that a position may have one entry more. Raises InferenceError.
        """
        return await self.pool.complete(LOGPROBS, kwargs, [self])

    async def update_weight(self, weight: float) -> None:
        """Scale both limits to this environment's share of the batch, between 0 and 1."""
        if weight == self.sem.weight == self.eval_sem.weight:
            return
        before = self.sem.limit, self.eval_sem.limit
        self.sem.weight = self.eval_sem.weight = weight
        if before != (self.sem.limit, self.eval_sem.limit):
            self.pool.log.health(self)
            self.pool.queue.wake()

    @property
    def url(self) -> str:
        return self.config.base_url or "the inference server"

    @property
    def usable(self) -> bool:
        """Whether requests may go there: healthy, or nothing known yet."""
        return self.healthy is not False

    @property
    def server_healthy(self) -> bool:
        return self.usable

    @server_healthy.setter
    def server_healthy(self, healthy: bool) -> None:
        if healthy:
            self.pool.mark_up(self)
        else:
            self.pool.mark_down(self, f"{self.url} was declared unhealthy")

    @property
    def wants_probe(self) -> bool:
        return self.in_doubt or not self.usable

    def set_health(self, healthy: bool, detail: str) -> None:
        self.healthy, self.health_detail = healthy, detail

    def count(self, split: Split, seconds: float, attempts: int) -> None:
        """Note a request that succeeded in the end, for the metrics."""
        timings, counts = self._buffers(split)
        timings.append(seconds)
        counts.append(attempts)

    def prepared(self, operation: Operation[Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as they go to this server: with its model, and for chats with the reasoning config."""
        prepared = {**arguments, "model": self.config.model_name}
        skip_reasoning = prepared.pop("skip_reasoning", False)
        if operation is CHAT and self.reasoning_config is not None and not skip_reasoning:
            prepared = self.reasoning_config.added_to(prepared, self.config.base_url)
        return prepared

    async def wandb_metrics(self, metrics_dict: dict[str, Any] | None, server_name: str | None) -> dict[str, Any]:
        """Add timings and attempts of the newest requests under `server/{server_name}_…`; returns the same dict."""
        import numpy as np

        metrics: dict[str, Any] = {} if metrics_dict is None else metrics_dict
        prefix = f"server/{server_name or 'server'}_"
        for split, infix in (("train", ""), ("eval", "eval_")):
            timings, _ = self._buffers("eval" if split == "eval" else "train")
            if timings:
                metrics[f"{prefix}{infix}request_time_avg"] = float(np.mean(timings))
                metrics[f"{prefix}{infix}request_time_std"] = float(np.std(timings))
                metrics[f"{prefix}{infix}request_time_99p"] = float(np.percentile(timings, 99))
        if self.attempts_list:
            metrics[f"{prefix}average_num_attempts"] = float(np.mean(self.attempts_list))
        if self.eval_attempts_list:
            metrics[f"{prefix}eval_retry_rate"] = float(np.mean(self.eval_attempts_list))
        return metrics

    async def probe(self, http: httpx.AsyncClient) -> str:
        """Ask cheaply whether the server is there: what is wrong with it, or empty."""
        url = self.probe_url()
        headers = {"authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}
        try:
            response = await http.get(url, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"{url}: {str(error) or type(error).__name__}"
        # A server that refuses the probe, for want of a key or of the path, is there.
        return f"{url}: HTTP {response.status_code}" if response.status_code >= 500 else ""

    def probe_url(self) -> str:
        return f"{self.transport.root_url}/health"

    @abstractmethod
    async def _chat_completion_wrapper(self, **kwargs: Any) -> ChatCompletion: ...

    @abstractmethod
    async def _completion_wrapper(self, **kwargs: Any) -> Completion: ...

    @abstractmethod
    async def _tokens_and_logprobs_completion_wrapper(
        self, **kwargs: Any
    ) -> TokenCompletion | tuple[list[Any], list[Any], list[Any], list[Any]]: ...

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} does not give logprobs of prompts.")

    def _buffers(self, split: Split) -> tuple[deque[float], deque[int]]:
        if split == "train":
            return self.request_timings, self.attempts_list
        return self.eval_request_timings, self.eval_attempts_list
