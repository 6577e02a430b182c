"""vLLM: upstream's server with `/generate`, and stock vLLM, which takes token ids at `/v1/completions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.openai_server import OpenAIRoutes
from atropos_tui.inference.prompts import ModelTokenizer
from atropos_tui.inference.results import RawFinishReason, TokenCompletion, oldest, weight_version_of
from atropos_tui.inference.sampled import checked, prompt_logprobs


class VLLMServer(ModelTokenizer, OpenAIRoutes):
    """A vLLM server. Which of the two kinds it is is found out with the first request for tokens."""

    _is_stock: bool | None = None

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        ids = await self.prompt_ids(kwargs)
        sampling = _sampling(kwargs)
        if self._is_stock is not True:
            answer = await self._generate({"prompt": {"prompt_token_ids": ids}, "logprobs": 0, **sampling})
            if answer is not None:
                return _from_generate(self._generate_url, ids, answer)
        url = f"{self.transport.base_url}/completions"
        body = {
            "model": self.config.model_name, "prompt": ids, "logprobs": 1, "return_token_ids": True,
            "return_tokens_as_token_ids": True, **sampling,
        }  # fmt: skip
        return _from_completions(url, ids, await self.transport.post_json(url, body))

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        top_k = max(1, int(kwargs.pop("top_k", None) or kwargs.pop("top_logprobs", None) or 1))
        ids = await self.prompt_ids(kwargs)
        sampling = _sampling(kwargs)
        # Only the prompt is of interest: one greedy token, because servers refuse to generate none.
        asked = {"max_tokens": 1, **sampling, "prompt_logprobs": top_k, "n": 1, "temperature": 0.0, "top_p": 1.0}
        url = self._generate_url
        answer = None
        if self._is_stock is not True:
            answer = await self._generate({"prompt": {"prompt_token_ids": ids}, **asked})
        if answer is None:
            url = f"{self.transport.base_url}/completions"
            answer = await self.transport.post_json(url, {"model": self.config.model_name, "prompt": ids, **asked})
            answer = (answer.get("choices") or [{}])[0] if isinstance(answer, dict) else {}
        return prompt_logprobs(url, ids, answer.get("prompt_logprobs"))

    @property
    def _generate_url(self) -> str:
        return f"{self.transport.root_url}/generate"

    async def _generate(self, body: dict[str, Any]) -> Any:
        """The answer of upstream's route, or None when the server has no such route."""
        try:
            answer = await self.transport.post_json(self._generate_url, body)
        except RequestError as failure:
            # Others may have asked at the same time and found out first.
            if self._is_stock is not False and failure.kind in ("http_404", "http_405"):
                self._is_stock = True
                return None
            raise
        self._is_stock = False
        return answer


def _sampling(arguments: dict[str, Any]) -> dict[str, Any]:
    """The sampling parameters by vLLM's names."""
    sampling = {name: value for name, value in arguments.items() if name not in ("model", "extra_body")}
    sampling.update(arguments.get("extra_body") or {})
    for name in ("max_new_tokens", "max_completion_tokens"):
        if name in sampling:
            sampling["max_tokens"] = sampling.pop(name)
    return sampling


def _from_generate(url: str, ids: list[int], answer: Any) -> TokenCompletion:
    """`{"logprobs": [choice][position][0] = {"<id>": logprob}, "finish_reasons": [word], …}`, and from some servers
    `token_ids`, `prompt_token_ids` and `weight_version`."""
    try:
        sampled = [_sampled(positions) for positions in answer["logprobs"]]
        tokens, logprobs = [tokens for tokens, _ in sampled], [logprobs for _, logprobs in sampled]
        reasons: list[RawFinishReason] = list(answer["finish_reasons"])
        version = weight_version_of(answer.get("weight_version"))
        told_tokens, told_prompt = answer.get("token_ids"), answer.get("prompt_token_ids")
    except (TypeError, KeyError, IndexError, ValueError, AttributeError, StopIteration) as error:
        raise malformed(url, f"without logprobs as vLLM gives them ({type(error).__name__}: {error})") from error
    if told_tokens is not None and [list(choice) for choice in told_tokens] != tokens:
        raise malformed(url, "with token_ids that are not those of its logprobs")
    return checked(url, ids, told_prompt, tokens, logprobs, reasons, [version] * len(tokens))


def _sampled(positions: Sequence[Any]) -> tuple[list[int], list[float]]:
    """Ids and logprobs of one choice's `[position][0] = {"<id>": logprob}`; of several ids at a position, the first."""
    told = [position[0] for position in positions]
    if set(map(len, told)) - {1}:
        told = [dict([next(iter(each.items()))]) for each in told]
    return [int(token) for each in told for token in each], [logprob for each in told for logprob in each.values()]


def _from_completions(url: str, ids: list[int], answer: Any) -> TokenCompletion:
    """Stock vLLM's choices: `token_ids`, `logprobs.token_logprobs`, `prompt_token_ids`, `weight_versions`."""
    try:
        choices = answer["choices"]
        tokens = [_choice_tokens(choice) for choice in choices]
        logprobs = [list((choice["logprobs"] or {})["token_logprobs"]) for choice in choices]
        reasons = [choice.get("finish_reason") for choice in choices]
        versions = [_choice_version(choice) for choice in choices]
        told_prompt = choices[0].get("prompt_token_ids") if choices else None
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise malformed(url, f"without token ids and logprobs ({type(error).__name__}: {error})") from error
    return checked(url, ids, told_prompt, tokens, logprobs, reasons, versions)


def _choice_tokens(choice: dict[str, Any]) -> list[int]:
    if choice.get("token_ids") is not None:
        return [int(token) for token in choice["token_ids"]]
    # Before vLLM 0.10.2 the ids came only as the words "token_id:123" in place of the tokens' texts.
    return [int(word.removeprefix("token_id:")) for word in choice["logprobs"]["tokens"]]


def _choice_version(choice: dict[str, Any]) -> int | None:
    """The oldest policy version that sampled part of this choice: it decides how off-policy the whole is."""
    spans: Sequence[Any] = choice.get("weight_versions") or [{"version": choice.get("weight_version")}]
    return oldest([weight_version_of(span["version"]) for span in spans])
