"""What to say of an exception: its root cause in one line, its traceback, and which reason it is counted under."""

from __future__ import annotations

import traceback
from typing import Any

from atropos_tui.errors import InferenceError
from atropos_tui.ledger.outcomes import FailReason

LINE_LIMIT = 500
TRACEBACK_LIMIT = 20_000


class RolloutTimeout(TimeoutError):  # noqa: N818  the word of the outcome
    """The environment's code took longer than `worker_timeout`."""


def root_cause(error: BaseException) -> BaseException:
    """The innermost exception that was deliberately wrapped: by `raise … from`, a group of exceptions or a retry."""
    return _chain(error)[-1]


def describe(error: BaseException) -> str:
    """`KeyError: 'x'` — the root cause in one line of bounded length."""
    cause = root_cause(error)
    text = " ".join(str(cause).split())
    line = f"{type(cause).__name__}: {text}" if text else type(cause).__name__
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"


def traceback_text(error: BaseException) -> str:
    """The whole traceback; of a very long one the end, where the fault is."""
    text = "".join(traceback.format_exception(error))
    return text if len(text) <= TRACEBACK_LIMIT else "…\n" + text[-TRACEBACK_LIMIT:]


def fail_reason(error: BaseException) -> FailReason:
    """Whose fault it was. An inference error stays one however the environment wrapped it."""
    for link in _chain(error):
        if isinstance(link, InferenceError) or _is_openai_error(link):
            return FailReason.INFERENCE_ERROR
        if isinstance(link, RolloutTimeout):
            return FailReason.TIMEOUT
    return FailReason.ENV_ERROR


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what it wraps, outermost first; causes may go in a circle."""
    chain = [error]
    while (inner := _wrapped(chain[-1])) is not None and all(inner is not link for link in chain):
        chain.append(inner)
    return chain


def _wrapped(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return _last_attempt(error)


def _last_attempt(error: Any) -> BaseException | None:
    """What a tenacity RetryError hides, without importing tenacity."""
    exception = getattr(getattr(error, "last_attempt", None), "exception", None)
    outcome = exception() if callable(exception) else None
    return outcome if isinstance(outcome, BaseException) else None


def _is_openai_error(error: BaseException) -> bool:
    """By name, so that reading an exception doesn't import the openai package."""
    return any(base.__module__.partition(".")[0] == "openai" for base in type(error).__mro__)
