"""TRL's `trl vllm-serve`: up to TRL 1.10 a server with a `/generate/` for everything, since then vLLM's own server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from atropos_tui.inference.config import APIServerConfig, ReasoningConfig
from atropos_tui.inference.dialogue import ChatTemplate, plain_messages
from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.results import (
    RawFinishReason,
    TokenCompletion,
    chat_choice,
    chat_completion,
    openai_finish_reason,
    text_completion,
    usage_of,
    weight_version_of,
)
from atropos_tui.inference.sampled import checked, topk_answer
from atropos_tui.inference.transport import Transport
from atropos_tui.inference.vllm_server import ABSENT, VLLMServer, sampling_parameters

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

T = TypeVar("T")

DEFAULTS = {
    "n": 1, "repetition_penalty": 1.0, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "max_tokens": 1024,
}  # fmt: skip
# Of a chat, but nothing that a sampler knows.
NOT_SAMPLING = (
    "messages", "tools", "tool_choice", "stream", "user", "logprobs", "top_logprobs", "reasoning", "reasoning_effort",
)  # fmt: skip


class TrlVllmServer(VLLMServer):
    """A TRL server; which of the two it is is found out with the first request.

    TRL's own tells no finish reason: a completion with the end-of-sequence token or a stop word stopped, others were
    cut off. Its address has no `/v1`, so one is left out where it is given.
    """

    _has_generate = True

    def __init__(self, config: APIServerConfig, reasoning_config: ReasoningConfig | None = None) -> None:
        super().__init__(config, reasoning_config)
        self.transport = Transport(f"{self.transport.root_url}/v1", config.api_key)

    def probe_url(self) -> str:
        return f"{self.transport.root_url}/health/"

    async def _chat_completion_wrapper(self, **kwargs: Any) -> ChatCompletion:
        return await self._either(self._chat, super()._chat_completion_wrapper, kwargs)

    async def _completion_wrapper(self, **kwargs: Any) -> Completion:
        return await self._either(self._complete, super()._completion_wrapper, kwargs)

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        """Needs a TRL that takes ids as prompts and gives logprobs; older ones raise RequestError."""
        return await self._either(self._complete_tokens, super()._tokens_and_logprobs_completion_wrapper, kwargs)

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        return await self._either(self._prompt_logprobs, super()._get_logprobs_wrapper, kwargs)

    async def _either(
        self,
        trls: Callable[[dict[str, Any]], Awaitable[T]],
        vllms: Callable[..., Awaitable[T]],
        arguments: Mapping[str, Any],
    ) -> T:
        """The answer of TRL's own server, or of vLLM's where TRL's routes are missing."""
        if self._has_generate:
            try:
                return await trls(dict(arguments))
            except RequestError as failure:
                if failure.kind not in ABSENT:
                    raise
        answer = await vllms(**arguments)
        self._has_generate = False
        return answer

    async def _chat(self, arguments: dict[str, Any]) -> ChatCompletion:
        tokenizer = await self._loaded_tokenizer()
        template = ChatTemplate(tokenizer, preserve_think_blocks=False, writes_tool_calls=False)
        prompt = template.render(plain_messages(arguments["messages"]), arguments.get("tools"))
        answer, outputs, reasons = await self._generate(prompt, arguments)
        choices = [
            chat_choice(i, tokenizer.decode(output), openai_finish_reason(reason))
            for i, (output, reason) in enumerate(zip(outputs, reasons, strict=True))
        ]
        return chat_completion(self.config.model_name, choices, _usage(answer, outputs))

    async def _complete(self, arguments: dict[str, Any]) -> Completion:
        tokenizer = await self._loaded_tokenizer()
        answer, outputs, reasons = await self._generate(arguments.pop("prompt", ""), arguments)
        texts = [tokenizer.decode(output) for output in outputs]
        return text_completion(self.config.model_name, texts, reasons, _usage(answer, outputs))

    async def _complete_tokens(self, arguments: dict[str, Any]) -> TokenCompletion:
        await self._loaded_tokenizer()
        ids = await self.prompt_ids(arguments)
        answer, outputs, reasons = await self._generate(ids, arguments, logprobs=0)
        if answer.get("logprobs") is None:
            raise RequestError(
                f"{self._url} gives no logprobs",
                "use a newer TRL, or server_type vllm",
                kind="no_logprobs",
                retry=False,
            )
        try:
            # [choice][position][rank]; asked for none beside the sampled token, it gives that one alone.
            logprobs = [[position[0] for position in choice] for choice in answer["logprobs"]]
            told_prompt = (answer.get("prompt_ids") or [None])[0]
        except (TypeError, IndexError, KeyError) as error:
            raise malformed(self._url, f"with logprobs that cannot be read ({error})") from error
        version = weight_version_of(answer.get("weight_version"))
        return checked(self._url, ids, told_prompt, outputs, logprobs, reasons, [version] * len(outputs))

    async def _prompt_logprobs(self, arguments: dict[str, Any]) -> dict[str, Any]:
        top_k = max(1, int(arguments.pop("top_k", None) or arguments.pop("top_logprobs", None) or 1))
        ids = await self.prompt_ids(arguments)
        url = f"{self.transport.root_url}/get_sequence_logprobs/"
        answer = await self.transport.post_json(
            url, {"sequences": [ids], "prompt_lengths": [0], "top_logprobs": top_k, "response_format": "json"}
        )
        try:
            positions = zip(answer["logprob_token_ids"][0], answer["logprobs"][0], strict=True)
            topk = [list(zip(tokens, logprobs, strict=True)) for tokens, logprobs in positions]
        except (TypeError, IndexError, KeyError, ValueError) as error:
            raise malformed(url, f"with logprobs that cannot be read ({error})") from error
        return topk_answer(url, ids, topk)

    @property
    def _url(self) -> str:
        return f"{self.transport.root_url}/generate/"

    async def _loaded_tokenizer(self) -> Any:
        return self._tokenizer or await asyncio.to_thread(lambda: self.tokenizer)

    async def _generate(
        self, prompt: str | list[int], arguments: Mapping[str, Any], **asked: Any
    ) -> tuple[dict[str, Any], list[list[int]], list[RawFinishReason]]:
        """The whole answer, the token ids of its completions, and why they ended."""
        sampling = sampling_parameters(arguments)
        body = {
            "prompts": [prompt],
            **{name: sampling.pop(name, default) for name, default in DEFAULTS.items()},
            **asked,
        }
        others = {name: value for name, value in sampling.items() if name not in (*NOT_SAMPLING, *body)}
        if others:
            body["generation_kwargs"] = others
        answer = await self.transport.post_json(self._url, body)
        try:
            outputs = [[int(token) for token in output] for output in answer["completion_ids"]]
        except (TypeError, KeyError, ValueError) as error:
            raise malformed(self._url, f"without completion_ids ({type(error).__name__}: {error})") from error
        return answer, outputs, [self._reason(output, others.get("stop")) for output in outputs]

    def _reason(self, output: list[int], stop: str | Sequence[str] | None) -> RawFinishReason:
        if self.tokenizer.eos_token_id in output:
            return "stop"
        words = [stop] if isinstance(stop, str) else stop or ()
        text = self.tokenizer.decode(output) if words else ""
        return "stop" if any(word in text for word in words) else "length"


def _usage(answer: dict[str, Any], outputs: list[list[int]]) -> Any:
    prompt_ids = answer.get("prompt_ids") or [[]]
    return usage_of(len(prompt_ids[0]), sum(map(len, outputs)))
