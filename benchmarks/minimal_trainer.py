"""A trainer as the trajectory API sees one: it registers, polls `/batch`, reads what comes, and trains on nothing."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
import orjson

POLL_SECONDS = 0.02


class MinimalTrainer(threading.Thread):
    """Polls until `stop`. `arrivals` has, for each batch, its monotonic time and the groups so far.

    It accepts gzip, as the HTTP clients of real trainers do. A trajectory API that is away is asked again.
    """

    def __init__(self, url: str, *, batch_size: int, max_token_len: int) -> None:
        super().__init__(name="trainer", daemon=True)
        self.arrivals: list[tuple[float, int]] = []
        self.error: Exception | None = None
        self.http = httpx.Client(base_url=url, timeout=120.0, trust_env=False)
        self._registration: dict[str, str | int] = {
            "wandb_group": "", "wandb_project": "", "batch_size": batch_size, "max_token_len": max_token_len,
            "checkpoint_dir": "", "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 1_000_000_000,
        }  # fmt: skip
        self._stopping = threading.Event()

    @property
    def groups(self) -> int:
        return self.arrivals[-1][1] if self.arrivals else 0

    def register(self, **changes: int) -> None:
        """Register, with other settings than before if wanted."""
        self._registration |= changes
        self.http.post("/register", json=self._registration).raise_for_status()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                batch = self._ask()
                if batch:
                    self.take(batch)
                else:
                    self._stopping.wait(POLL_SECONDS)
        except Exception as error:  # noqa: BLE001  whoever waits for this thread is told
            self.error = error
        finally:
            self.http.close()

    def take(self, batch: list[dict[str, Any]]) -> None:
        self.arrivals.append((time.monotonic(), self.groups + len(batch)))

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)

    def receive(self) -> list[dict[str, Any]] | None:
        """The next batch, None while there is none. Raises httpx.HTTPError."""
        answer = self.http.get("/batch")
        answer.raise_for_status()
        batch: list[dict[str, Any]] | None = orjson.loads(answer.content)["batch"]
        return batch

    def _ask(self) -> list[dict[str, Any]] | None:
        try:
            return self.receive()
        except httpx.TransportError:
            return None
