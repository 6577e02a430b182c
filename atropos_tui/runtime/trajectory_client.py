"""What the runtime asks of the trajectory API: registration, the trainer's settings and its progress.

Wire contract of atroposlib 0.4.0's `run-api`. Scored groups go another way (`sender.py`).
"""

from __future__ import annotations

from typing import Any

import httpx

from atropos_tui.errors import AtroposError

REGISTRATION = ("env_id", "wandb_name", "checkpoint_dir", "starting_step", "checkpoint_interval", "num_steps")
# What is wrong with the request itself. Not 404, for a proxy answers it while the server behind it still starts.
FINAL = frozenset({400, 401, 403, 405, 410, 411, 413, 414, 415, 422})
REQUEST_TIMEOUT = httpx.Timeout(10.0, connect=5.0)


class TrajectoryApiError(AtroposError):
    """The trajectory API gave no answer, or none that can be used: try again.

    `answered` tells that it said something, `gone` that nobody listens at its address, so that it will be another one
    that comes back. `final` tells that the same request will always get this answer.
    """

    def __init__(
        self, fault: str, remedy: str = "", *, answered: bool = False, gone: bool = False, final: bool = False
    ) -> None:
        self.answered = answered
        self.gone = gone
        self.final = final
        super().__init__(fault, remedy)


class UnknownEnvironment(TrajectoryApiError):  # noqa: N818  what the API says
    """The trajectory API doesn't know the environment's number: it was restarted, so register again."""


class TrajectoryClient:
    """Requests on one pooled HTTP client. Every method raises TrajectoryApiError."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.url = url.rstrip("/")
        self._http = http

    async def wandb_info(self) -> dict[str, Any]:
        """`{"group", "project"}`, null while no trainer is registered."""
        return _having(await self._ask("GET", "/wandb_info"), ("group", "project"))

    async def info(self) -> dict[str, Any]:
        """`{"batch_size", "max_token_len"}`, -1 while no trainer is registered."""
        return await self._ask("GET", "/info")

    async def register(self, registration: dict[str, Any]) -> dict[str, Any]:
        """`status` is "success" and comes with `env_id` and the trainer's settings, or says what it waits for."""
        answer = await self._ask("POST", "/register-env", registration)
        return _having(answer, REGISTRATION if answer.get("status") == "success" else ("status",))

    async def status(self, env_id: int) -> dict[str, Any]:
        """The trainer's step, queue sizes in groups of this environment, and its weight. Raises UnknownEnvironment."""
        return _having(await self._ask("GET", "/status-env", {"env_id": env_id}), ("current_step", "queue_size"))

    async def disconnect(self, env_id: int) -> dict[str, Any]:
        return await self._ask("POST", "/disconnect-env", {"env_id": env_id})

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            response = await self._http.request(method, self.url + path, json=body, timeout=REQUEST_TIMEOUT)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            gone = isinstance(error, httpx.ConnectError)
            raise TrajectoryApiError(f"{method} {path}: {_connection_words(error)}", gone=gone) from error
        if response.status_code == 404 and path == "/status-env":
            raise UnknownEnvironment(f"{method} {path}: the environment is not registered")
        if response.is_error:
            told = f"{method} {path}: HTTP {response.status_code} {response.text[:300]}"
            raise TrajectoryApiError(told, answered=True, final=response.status_code in FINAL)
        try:
            answer = response.json()
        except ValueError as error:
            raise TrajectoryApiError(f"{method} {path}: the answer is not JSON") from error
        if not isinstance(answer, dict):
            raise TrajectoryApiError(f"{method} {path}: the answer is not an object")
        return answer


def _having(answer: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    missing = [name for name in names if name not in answer]
    if missing:
        raise TrajectoryApiError(f"the answer lacks {', '.join(missing)}", answered=True)
    return answer


def _connection_words(error: Exception) -> str:
    if isinstance(error, httpx.ConnectError):
        return "cannot connect"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return str(error) or type(error).__name__
