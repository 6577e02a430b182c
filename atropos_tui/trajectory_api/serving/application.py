"""What a connection needs of the application."""

from __future__ import annotations

from typing import Protocol

from atropos_tui.trajectory_api.http import Answer, Request
from atropos_tui.trajectory_api.request_errors import RequestError


class Application(Protocol):
    """Answers requests. `body_limit` is in bytes, as sent."""

    body_limit: int

    def refusal(self, head: Request) -> Answer | None:
        """The answer to a request whose body need not be read, as it is refused whatever that says; else None."""

    def refused(self, error: RequestError) -> Answer:
        """The answer that tells of an error."""

    async def answer(self, request: Request) -> Answer:
        """The answer to a request that is complete."""
