"""The two servers a trainer speaks to: the trajectory API, which gives batches, and the inference server, which takes
weights."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Self

import httpx
import orjson

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.pocket.policy import Parameters
from atropos_tui.pocket.weights import weights_to_bytes, write_weights

TIMEOUT = httpx.Timeout(10.0, connect=3.0)
WEIGHTS_FILE = "policy.npz"


class Unreachable(AtroposError):  # noqa: N818  a state, which is waited out
    """A server isn't there, or gives no answer that can be used: try again later."""


class NotRegistered(AtroposError):  # noqa: N818  what the API says
    """The trajectory API knows no trainer: it was restarted, so register again."""


class Remote:
    """A server at a URL. Use as an async context manager."""

    def __init__(self, what: str, url: str) -> None:
        self.name = f"{what} at {url}"
        self._http = httpx.AsyncClient(base_url=url, timeout=TIMEOUT, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def _ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """The answer's JSON object. Raises Unreachable, and UsageError when the server refuses the request."""
        try:
            response = await self._http.request(method, path, **body)
        except httpx.HTTPError as error:
            raise Unreachable(f"{self.name} does not answer ({str(error) or type(error).__name__})") from error
        if response.is_client_error:
            raise UsageError(f"{self.name} refuses {method} {path} ({response.status_code}): {response.text[:200]}")
        try:
            answer = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            answer = None
        if response.is_error or not isinstance(answer, dict):
            raise Unreachable(f"{self.name} answers {method} {path} with {response.status_code} and no JSON object")
        return answer


class TrajectoryApi(Remote):
    """Wire contract of atroposlib 0.4.0's `run-api`, the trainer's side of it."""

    def __init__(self, url: str) -> None:
        super().__init__("trajectory API", url)

    async def register(
        self,
        *,
        batch_size: int,
        max_token_len: int,
        step: int,
        num_steps: int,
        checkpoint_dir: str = "",
        checkpoint_interval: int = 0,
    ) -> None:
        """Say what a batch is: `batch_size` counts sequences. Environments save theirs in `checkpoint_dir` as well."""
        registration = {
            "wandb_group": "pocket", "wandb_project": "pocket", "batch_size": batch_size,
            "max_token_len": max_token_len, "starting_step": step, "num_steps": num_steps,
            "checkpoint_dir": checkpoint_dir, "save_checkpoint_interval": checkpoint_interval,
        }  # fmt: skip
        await self._ask("POST", "/register", json=registration)

    async def next_batch(self) -> list[dict[str, Any]]:
        """The groups of the next batch, none if there isn't one yet. Raises NotRegistered after a restart."""
        answer = await self._ask("GET", "/batch")
        if answer.get("status") == "error":
            raise NotRegistered(f"{self.name} says: {answer.get('message')}")
        batch = answer.get("batch") or []
        if not isinstance(batch, list) or not all(isinstance(group, dict) for group in batch):
            raise Unreachable(f"{self.name} gives a batch that is no list of groups")
        return batch


class InferenceServer(Remote):
    """Takes weights as a file in `weights_dir` if it can read that, else in the request."""

    def __init__(self, url: str, weights_dir: Path | None) -> None:
        super().__init__("inference server", url)
        self._weights_path = weights_dir and weights_dir.absolute() / WEIGHTS_FILE

    async def update_weights(self, parameters: Parameters, version: int) -> None:
        if self._weights_path is None:
            content = await asyncio.to_thread(weights_to_bytes, parameters)
            await self._ask("POST", "/update_weights", content=content, params={"weight_version": version})
        else:
            await asyncio.to_thread(write_weights, parameters, self._weights_path)
            update = {"path": str(self._weights_path), "weight_version": version}
            await self._ask("POST", "/update_weights", json=update)
