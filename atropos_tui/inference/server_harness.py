"""The offline stand-in for `--testing`: canned answers, and something plausible for everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from atropos_tui.inference.config import APIServerConfig, ReasoningConfig
from atropos_tui.inference.prompts import ModelTokenizer
from atropos_tui.inference.results import TokenCompletion, chat_choice, chat_completion, text_completion, usage_of
from atropos_tui.inference.server import APIServer

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

ANSWER = "This is the answer of the offline test server."
ECHOED_TOKENS = 8


def create_chat_completion(resp: str | Sequence[str], n: int = 1, finish_reason: Any = "stop") -> ChatCompletion:
    """A chat completion of `n` choices; `resp` and `finish_reason` are for all, or a list with one a choice."""
    choices = [chat_choice(i, _of(resp, i), _of(finish_reason, i)) for i in range(n)]
    return chat_completion("test_model", choices)


def create_completion(resp: str | Sequence[str], n: int = 1, finish_reason: Any = "stop") -> Completion:
    """A completion of `n` choices; `resp` and `finish_reason` are for all, or a list with one a choice."""
    return text_completion("test_model", [_of(resp, i) for i in range(n)], [_of(finish_reason, i) for i in range(n)])


class ServerHarness(ModelTokenizer, APIServer):
    """A server that is not there. Prompts with a desired response get it; a chat or completion is otherwise answered
    with a fixed text, and a request for tokens with tokens of its prompt."""

    def __init__(self, config: APIServerConfig | None = None, reasoning_config: ReasoningConfig | None = None) -> None:
        super().__init__(config or APIServerConfig(), reasoning_config)
        self.response_map: dict[str, Any] = {}
        self.tokens_and_logprobs_map: dict[str, TokenCompletion] = {}

    @property
    def config(self) -> APIServerConfig:
        return self._config

    @config.setter
    def config(self, config: Any) -> None:
        """Takes any object with some of the fields, such as only `model_name`; tests put such ones in."""
        fields = {name: getattr(config, name) for name in APIServerConfig.model_fields if hasattr(config, name)}
        self._config = config if isinstance(config, APIServerConfig) else APIServerConfig(**fields)

    def conv_to_dictkey(self, input_message: Sequence[Mapping[str, Any]]) -> str:
        """The key of a chat in `response_map`."""
        return "\n".join(f"role:{message['role']}\ncontent:{message['content']}" for message in input_message)

    def set_desired_response(
        self, input_message: Sequence[Mapping[str, Any]], desired_response: ChatCompletion
    ) -> None:
        self.response_map[self.conv_to_dictkey(input_message)] = desired_response

    def set_desired_completion(self, input_message: str, completion: Completion) -> None:
        self.response_map[input_message] = completion

    def set_tokens_and_logprobs_response(
        self,
        prompt: str,
        prompt_tokens: list[int],
        output_tokens_list: list[list[int]],
        output_logprobs_list: list[list[float]],
        finish_reasons: list[Any],
    ) -> None:
        self.tokens_and_logprobs_map[prompt] = TokenCompletion(
            prompt_tokens, output_tokens_list, output_logprobs_list, finish_reasons
        )

    async def _chat_completion_wrapper(self, **kwargs: Any) -> ChatCompletion:
        desired = self.response_map.get(self.conv_to_dictkey(kwargs["messages"]))
        if desired is not None:
            answer: ChatCompletion = desired.model_copy(deep=True)
            return answer
        n = int(kwargs.get("n") or 1)
        return chat_completion(
            self.config.model_name, [chat_choice(i, ANSWER, "stop") for i in range(n)], usage_of(0, 0)
        )

    async def _completion_wrapper(self, **kwargs: Any) -> Completion:
        desired = self.response_map.get(kwargs["prompt"])
        if desired is not None:
            answer: Completion = desired.model_copy(deep=True)
            return answer
        n = int(kwargs.get("n") or 1)
        return text_completion(self.config.model_name, [ANSWER] * n, ["stop"] * n, usage_of(0, 0))

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        desired = self.tokens_and_logprobs_map.get(kwargs.get("prompt") or "")
        if desired is not None:
            return desired
        ids = await self.prompt_ids(kwargs)
        n = int(kwargs.get("n") or 1)
        # Each choice echoes another part of the prompt: ids that every vocabulary knows, and not all alike.
        outputs = [(ids[i % len(ids) :] + ids)[:ECHOED_TOKENS] if ids else [] for i in range(n)]
        return TokenCompletion(ids, outputs, [[-1.0] * len(output) for output in outputs], ["stop"] * n)

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        ids = await self.prompt_ids(kwargs)
        return {
            "prompt_tokens": ids,
            "prompt_topk_token_ids": [[token] for token in ids],
            "prompt_topk_logprobs": [[-1.0] for _ in ids],
        }


def _of(value: Any, index: int) -> Any:
    return value if isinstance(value, str) else value[index]
