"""TRL's `trl vllm-serve`: everything goes through `/generate/`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from atropos_tui.inference.dialogue import ChatTemplate, plain_messages
from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.prompts import ModelTokenizer
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
from atropos_tui.inference.server import APIServer

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

DEFAULTS = {
    "n": 1, "repetition_penalty": 1.0, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "max_tokens": 1024,
}  # fmt: skip


class TrlVllmServer(ModelTokenizer, APIServer):
    """A TRL server. It tells no finish reason: a completion with the end-of-sequence token stopped, others were cut."""

    def probe_url(self) -> str:
        return f"{self.transport.base_url}/health/"

    async def _chat_completion_wrapper(self, **kwargs: Any) -> ChatCompletion:
        tokenizer = await self._loaded_tokenizer()
        template = ChatTemplate(tokenizer, preserve_think_blocks=False, writes_tool_calls=False)
        prompt = template.render(plain_messages(kwargs.pop("messages")), kwargs.pop("tools", None))
        answer, outputs = await self._generate(prompt, kwargs)
        choices = [
            chat_choice(i, tokenizer.decode(output), openai_finish_reason(self._reason(output)))
            for i, output in enumerate(outputs)
        ]
        return chat_completion(self.config.model_name, choices, _usage(answer, outputs))

    async def _completion_wrapper(self, **kwargs: Any) -> Completion:
        tokenizer = await self._loaded_tokenizer()
        answer, outputs = await self._generate(kwargs.pop("prompt", ""), kwargs)
        texts = [tokenizer.decode(output) for output in outputs]
        reasons = [self._reason(output) for output in outputs]
        return text_completion(self.config.model_name, texts, reasons, _usage(answer, outputs))

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        """Needs a TRL that takes ids as prompts and gives logprobs; older ones raise RequestError."""
        await self._loaded_tokenizer()
        ids = await self.prompt_ids(kwargs)
        answer, outputs = await self._generate(ids, {**kwargs, "logprobs": 0})
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
        reasons = [self._reason(output) for output in outputs]
        version = weight_version_of(answer.get("weight_version"))
        return checked(self._url, ids, told_prompt, outputs, logprobs, reasons, [version] * len(outputs))

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        top_k = max(1, int(kwargs.pop("top_k", None) or kwargs.pop("top_logprobs", None) or 1))
        ids = await self.prompt_ids(kwargs)
        url = f"{self.transport.base_url}/get_sequence_logprobs/"
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
        return f"{self.transport.base_url}/generate/"

    async def _loaded_tokenizer(self) -> Any:
        return self._tokenizer or await asyncio.to_thread(lambda: self.tokenizer)

    async def _generate(
        self, prompt: str | list[int], arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[list[int]]]:
        """The whole answer, and the token ids of its completions."""
        sampling = {name: arguments.get(name, default) for name, default in DEFAULTS.items()}
        if "logprobs" in arguments:
            sampling["logprobs"] = arguments["logprobs"]
        answer = await self.transport.post_json(self._url, {"prompts": [prompt], **sampling})
        try:
            return answer, [[int(token) for token in output] for output in answer["completion_ids"]]
        except (TypeError, KeyError, ValueError) as error:
            raise malformed(self._url, f"without completion_ids ({type(error).__name__}: {error})") from error

    def _reason(self, output: list[int]) -> RawFinishReason:
        return "stop" if self.tokenizer.eos_token_id in output else "length"


def _usage(answer: dict[str, Any], outputs: list[list[int]]) -> Any:
    prompt_ids = answer.get("prompt_ids") or [[]]
    return usage_of(len(prompt_ids[0]), sum(map(len, outputs)))
