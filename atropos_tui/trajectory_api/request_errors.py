"""Why the server says no: each becomes one HTTP answer with the reason in words."""

from __future__ import annotations

from typing import Any

from atropos_tui.errors import AtroposError


class RequestError(AtroposError):
    """A request that is answered with an error status; `detail` is the answer's body, in FastAPI's form."""

    def __init__(self, status: int, fault: str, remedy: str = "") -> None:
        self.status = status
        super().__init__(fault, remedy)

    @property
    def detail(self) -> Any:
        return str(self)


class BadBodyError(RequestError):
    """A body that breaks the wire contract; each problem has the place (`loc`), a `type` and a sentence (`msg`)."""

    def __init__(self, problems: list[dict[str, Any]]) -> None:
        self.problems = problems
        super().__init__(422, problems[0]["msg"])

    @property
    def detail(self) -> Any:
        return self.problems


class UnknownEnvironmentError(RequestError):
    """An environment id that was not given out since the last reset."""

    def __init__(self, env_id: int) -> None:
        super().__init__(404, f"environment {env_id} is not registered here", "register again with POST /register-env")


def problem(loc: tuple[str | int, ...], message: str, kind: str = "value_error") -> dict[str, Any]:
    """One entry of a 422 answer, in FastAPI's form."""
    return {"type": kind, "loc": ["body", *loc], "msg": message}
