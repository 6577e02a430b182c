"""Chat and completion over OpenAI's routes, which vLLM, SGLang and many providers serve too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx

from atropos_tui.inference.failures import RequestError, from_status, from_transport, malformed
from atropos_tui.inference.results import TokenCompletion
from atropos_tui.inference.server import APIServer

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion


class OpenAIRoutes(APIServer):
    """A server with `/chat/completions` and `/completions`, spoken to with the `openai` package."""

    async def _chat_completion_wrapper(self, **kwargs: Any) -> ChatCompletion:
        answer: ChatCompletion = await self._create(
            "chat/completions", self.transport.openai().chat.completions, kwargs
        )
        return answer

    async def _completion_wrapper(self, **kwargs: Any) -> Completion:
        answer: Completion = await self._create("completions", self.transport.openai().completions, kwargs)
        return answer

    async def _create(self, path: str, resource: Any, arguments: dict[str, Any]) -> Any:
        import openai

        url = f"{self.transport.base_url}/{path}"
        if self.transport.base_url and not self.config.api_key:
            # The package insists on a key; a server that needs none shall not be sent a made-up one.
            arguments = {
                **arguments,
                "extra_headers": {"Authorization": openai.Omit(), **arguments.get("extra_headers", {})},
            }
        try:
            answer = await resource.create(**_known_arguments(resource, arguments))
        except openai.APIStatusError as error:
            raise from_status(url, error.status_code, error.response.text, error.response.headers) from error
        except openai.APIConnectionError as error:
            raise _network_failure(url, error) from error
        except (openai.APIError, ValueError) as error:
            raise malformed(url, f"with something that cannot be read ({error})") from error
        # The package does not check what it parsed, and hands on a page of HTML as a string.
        if not isinstance(getattr(answer, "choices", None), list):
            raise malformed(url, f"without choices: {str(answer)[:200]}")
        return answer


class OpenAIServer(OpenAIRoutes):
    """OpenAI itself or any compatible provider. It gives no token ids, so nothing to train on."""

    def probe_url(self) -> str:
        return f"{self.transport.base_url}/models"

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> TokenCompletion:
        raise NotImplementedError(
            "OpenAI's API gives no token ids, which training needs; use server_type vllm or sglang."
        )

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError("OpenAI's API gives no logprobs of prompts; use server_type vllm or sglang.")


@cache
def _parameters(create: Callable[..., Any]) -> frozenset[str]:
    """What OpenAI's API takes there. Looking it up takes longer than sending a request."""
    return frozenset(inspect.signature(create).parameters)


def _known_arguments(resource: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that OpenAI's API does not take, such as `top_k`, go into the body all the same."""
    known = _parameters(resource.create.__func__)
    extra = {name: value for name, value in arguments.items() if name not in known}
    if not extra:
        return arguments
    kept = {name: value for name, value in arguments.items() if name in known}
    return {**kept, "extra_body": {**extra, **(kept.get("extra_body") or {})}}


def _network_failure(url: str, error: Exception) -> RequestError:
    """What lies under the package's own connection error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, httpx.HTTPError | httpx.InvalidURL):
        cause = cause.__cause__
    return from_transport(url, cause or httpx.TransportError(str(error)))
