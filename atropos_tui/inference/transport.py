"""The HTTP connection to one server: one pooled client for each event loop that uses it."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any, cast

import httpx
import orjson

from atropos_tui.errors import InferenceError
from atropos_tui.inference.failures import from_status, from_transport, malformed
from atropos_tui.inference.http_pool import new_http_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CLOSE_TIMEOUT = 2.0


class Transport:
    """Requests to one server. Connections belong to the event loop they were made on, so each loop has its own pool."""

    def __init__(self, base_url: str | None, api_key: str | None) -> None:
        self.base_url = (base_url or "").rstrip("/")
        self.root_url = self.base_url.removesuffix("/v1")
        self._api_key = api_key or ""
        self._lock = threading.Lock()
        self._clients: dict[asyncio.AbstractEventLoop, _LoopClients] = {}

    async def post_json(self, url: str, body: dict[str, Any]) -> Any:
        """POST a JSON body and parse the JSON answer. Raises RequestError."""
        return parsed(url, await self.post(url, body))

    async def post(self, url: str, body: dict[str, Any]) -> bytes:
        """POST a JSON body; the answer as it came. Raises RequestError."""
        return await self._request("POST", url, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY))

    async def get_json(self, url: str) -> Any:
        """GET and parse the JSON answer. Raises RequestError."""
        return parsed(url, await self._request("GET", url))

    async def delete(self, url: str) -> Any:
        """DELETE and parse the JSON answer. Raises RequestError."""
        return parsed(url, await self._request("DELETE", url))

    def openai(self) -> AsyncOpenAI:
        """An `openai` client on the same pool. Raises InferenceError when OpenAI itself is meant and has no key."""
        return self._of_this_loop().openai_client(self.base_url, self._api_key)

    async def close(self) -> None:
        """Close the connections of this loop and of all other loops that still run."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for loop, of_loop in clients.items():
            if loop is asyncio.get_running_loop():
                await of_loop.http.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(of_loop.http.aclose(), loop)
                # An author's code may hold up that loop for any time.
                await asyncio.wait([asyncio.wrap_future(closing)], timeout=CLOSE_TIMEOUT)

    async def _request(self, method: str, url: str, content: bytes | None = None) -> bytes:
        headers = {"content-type": "application/json"} if content is not None else {}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        try:
            response = await self._of_this_loop().http.request(method, url, content=content, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise from_transport(url, error) from error
        if response.status_code >= 400:
            raise from_status(url, response.status_code, response.text, response.headers)
        return response.content

    def _of_this_loop(self) -> _LoopClients:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                # Loops come and go in an author's threads; what belonged to closed ones is of no use any more.
                self._clients = {known: made for known, made in self._clients.items() if not known.is_closed()}
                self._clients[loop] = _LoopClients()
            return self._clients[loop]


def parsed(url: str, content: bytes) -> Any:
    """The value of an answer's JSON. Raises RequestError.

    Logprobs come as thousands of small dicts, during whose making Python (before 3.12) would look for garbage again and
    again: seven times the work of parsing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise malformed(url, f"with broken JSON ({error})") from error
    finally:
        if collects:
            gc.enable()


class _LoopClients:
    def __init__(self) -> None:
        # How long a request may take is for its caller to say.
        self.http = new_http_client(None)
        self._openai: AsyncOpenAI | None = None

    def openai_client(self, base_url: str, api_key: str) -> AsyncOpenAI:
        if self._openai is None:
            from openai import AsyncOpenAI, OpenAIError

            try:
                self._openai = AsyncOpenAI(
                    base_url=base_url or None,
                    # Without an address OpenAI itself is meant, and the package looks for a key in OPENAI_API_KEY.
                    api_key=api_key or ("none" if base_url else None),
                    max_retries=0,
                    http_client=cast(Any, self.http),
                )
            except OpenAIError as error:
                raise InferenceError(str(error), "set --openai.api_key or --openai.base_url", kind="address") from error
        return self._openai
