"""vLLM: upstream's server with `/generate`, and stock vLLM, which takes token ids at routes of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.generated import read_generated
from atropos_tui.inference.openai_server import OpenAIRoutes
from atropos_tui.inference.prompts import ModelTokenizer
from atropos_tui.inference.results import TokenCompletion, oldest, weight_version_of
from atropos_tui.inference.sampled import checked, prompt_logprobs
from atropos_tui.inference.transport import parsed

# From best to most common. Only `--enable-scale-out` gives the second, which alone tells who sampled each token.
Route = Literal["/generate", "/inference/v1/generate", "/completions"]
# vLLM answers 403 for a route that its flags leave out.
ABSENT = ("http_403", "http_404", "http_405")


class VLLMServer(ModelTokenizer, OpenAIRoutes):
    """A vLLM server. Which routes it lacks is found out with the first request for tokens."""

    _absent: frozenset[Route] = frozenset()

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        ids = await self.prompt_ids(kwargs)
        sampling = sampling_parameters(kwargs)
        url, route, content = await self._ask(
            self._bodies(
                ids, sampling, generate={"logprobs": 0},
                completions={"logprobs": 1, "return_token_ids": True, "return_tokens_as_token_ids": True},
            )
        )  # fmt: skip
        return _READERS[route](url, ids, content)

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        top_k = max(1, int(kwargs.pop("top_k", None) or kwargs.pop("top_logprobs", None) or 1))
        ids = await self.prompt_ids(kwargs)
        # Only the prompt is of interest: one greedy token, because servers refuse to generate none.
        asked = {"prompt_logprobs": top_k, "n": 1, "temperature": 0.0, "top_p": 1.0}
        url, route, content = await self._ask(
            self._bodies(ids, {"max_tokens": 1, **sampling_parameters(kwargs), **asked})
        )
        answer = parsed(url, content)
        if route == "/completions" and isinstance(answer, dict):
            answer = (answer.get("choices") or [{}])[0]
        return prompt_logprobs(url, ids, answer.get("prompt_logprobs") if isinstance(answer, dict) else None)

    def _bodies(
        self,
        ids: list[int],
        sampling: Mapping[str, Any],
        generate: Mapping[str, Any] | None = None,
        completions: Mapping[str, Any] | None = None,
    ) -> dict[Route, dict[str, Any]]:
        """The body of a request for each route, with what the generating ones and what `/completions` need besides."""
        model = self.config.model_name
        bodies: dict[Route, dict[str, Any]] = {
            "/generate": {"prompt": {"prompt_token_ids": ids}, **(generate or {}), **sampling},
            "/inference/v1/generate": {
                "model": model, "token_ids": ids, "sampling_params": {**(generate or {}), **sampling},
            },
            "/completions": {"model": model, "prompt": ids, **(completions or {}), **sampling},
        }  # fmt: skip
        if "response_format" in sampling:
            # No sampling parameter, and so ignored there without a word.
            del bodies["/inference/v1/generate"]
        return bodies

    async def _ask(self, bodies: Mapping[Route, dict[str, Any]]) -> tuple[str, Route, bytes]:
        """The address and the answer of the first of the routes that this server has."""
        routes = [route for route in bodies if route not in self._absent]
        for route in routes:
            url = f"{self.transport.base_url if route == '/completions' else self.transport.root_url}{route}"
            try:
                content = await self.transport.post(url, bodies[route])
            except RequestError as failure:
                if failure.kind not in ABSENT or route == routes[-1]:
                    raise
            else:
                # Remembered only once something is there: what answers 404 to everything may be starting up.
                self._absent |= set(routes[: routes.index(route)])
                return url, route, content
        raise AssertionError("the last route's failure is raised")


def sampling_parameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The sampling parameters by vLLM's names."""
    sampling = {name: value for name, value in arguments.items() if name not in ("model", "extra_body")}
    sampling.update(arguments.get("extra_body") or {})
    for name in ("max_new_tokens", "max_completion_tokens"):
        if name in sampling:
            sampling["max_tokens"] = sampling.pop(name)
    return sampling


def _from_generate(url: str, ids: list[int], content: bytes) -> TokenCompletion:
    answer = read_generated(url, content)
    try:
        sampled = answer.sampled()
    except (TypeError, KeyError, IndexError, ValueError, AttributeError, StopIteration) as error:
        raise malformed(url, f"without logprobs as vLLM gives them ({type(error).__name__}: {error})") from error
    tokens, logprobs = [tokens for tokens, _ in sampled], [logprobs for _, logprobs in sampled]
    if answer.token_ids is not None and answer.token_ids != tokens:
        raise malformed(url, "with token_ids that are not those of its logprobs")
    versions = [weight_version_of(answer.weight_version)] * len(tokens)
    return checked(url, ids, answer.prompt_token_ids, tokens, logprobs, answer.finish_reasons, versions)


def _from_completions(url: str, ids: list[int], content: bytes) -> TokenCompletion:
    """Stock vLLM's choices: `token_ids`, `logprobs.token_logprobs`, `prompt_token_ids`, `weight_versions`."""
    answer = parsed(url, content)
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


def _from_scale_out(url: str, ids: list[int], content: bytes) -> TokenCompletion:
    """Choices with `token_ids`, `logprobs.content[position].logprob` and the `weight_versions` of spans of tokens."""
    answer = parsed(url, content)
    try:
        choices = answer["choices"]
        tokens = [[int(token) for token in choice["token_ids"]] for choice in choices]
        logprobs = [[entry["logprob"] for entry in (choice["logprobs"] or {})["content"]] for choice in choices]
        reasons = [choice.get("finish_reason") for choice in choices]
        versions = [_choice_version(choice) for choice in choices]
        told_prompt = answer.get("prompt_token_ids")
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


_Reader: TypeAlias = Callable[[str, list[int], bytes], TokenCompletion]
_READERS: Mapping[Route, _Reader] = {
    "/generate": _from_generate,
    "/inference/v1/generate": _from_scale_out,
    "/completions": _from_completions,
}
