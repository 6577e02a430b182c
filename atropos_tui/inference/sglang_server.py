"""SGLang: OpenAI's routes for text, `/generate` for token ids and logprobs."""

from __future__ import annotations

from typing import Any

from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.openai_server import OpenAIRoutes
from atropos_tui.inference.prompts import ModelTokenizer
from atropos_tui.inference.results import RawFinishReason, TokenCompletion, weight_version_of
from atropos_tui.inference.sampled import checked, topk_answer


class SGLangServer(ModelTokenizer, OpenAIRoutes):
    """An SGLang server."""

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        ids = await self.prompt_ids(kwargs)
        answers = await self._generate(
            {
                "input_ids": ids,
                "sampling_params": _sampling(kwargs),
                "return_logprob": True,
                "return_text_in_logprobs": False,
            }
        )
        try:
            infos = [answer["meta_info"] for answer in answers]
            entries = [info["output_token_logprobs"] for info in infos]
            tokens = [[int(entry[1]) for entry in choice] for choice in entries]
            logprobs = [[entry[0] for entry in choice] for choice in entries]
            reasons: list[RawFinishReason] = [info.get("finish_reason") for info in infos]
            versions = [weight_version_of(info.get("weight_version")) for info in infos]
        except (TypeError, KeyError, IndexError, ValueError, AttributeError) as error:
            raise malformed(self._url, f"without output_token_logprobs ({type(error).__name__}: {error})") from error
        return checked(self._url, ids, None, tokens, logprobs, reasons, versions)

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        top_k = max(1, int(kwargs.pop("top_k", None) or kwargs.pop("top_logprobs", None) or 1))
        ids = await self.prompt_ids(kwargs)
        answers = await self._generate(
            {
                "input_ids": ids,
                "sampling_params": {"max_new_tokens": 1, "temperature": 0.0},
                "return_logprob": True,
                "logprob_start_len": 0,
                "top_logprobs_num": top_k,
            }
        )
        try:
            positions = answers[0]["meta_info"]["input_top_logprobs"]
            topk = [[(int(token), float(logprob)) for logprob, token, *_ in position or ()] for position in positions]
        except (TypeError, KeyError, IndexError, ValueError) as error:
            raise RequestError(
                f"{self._url} gives no input_top_logprobs ({error})", kind="no_logprobs", retry=False
            ) from error
        return topk_answer(self._url, ids, topk)

    @property
    def _url(self) -> str:
        return f"{self.transport.root_url}/generate"

    async def _generate(self, body: dict[str, Any]) -> list[Any]:
        """The answers, one a choice; a single one comes without a list."""
        answer = await self.transport.post_json(self._url, body)
        return answer if isinstance(answer, list) else [answer]


def _sampling(arguments: dict[str, Any]) -> dict[str, Any]:
    """The sampling parameters by SGLang's names."""
    sampling = {name: value for name, value in arguments.items() if name not in ("model", "extra_body")}
    sampling.update(arguments.get("extra_body") or {})
    for name in ("max_tokens", "max_completion_tokens"):
        if name in sampling:
            sampling["max_new_tokens"] = sampling.pop(name)
    return sampling
