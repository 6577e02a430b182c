"""Of an exception one is told the root cause in one line, the whole traceback, and whose fault it was."""

from __future__ import annotations

import httpx
import openai
import pytest

from atropos_tui.errors import InferenceError
from atropos_tui.ledger.outcomes import FailReason
from atropos_tui.runtime.failures import RolloutTimeout, describe, fail_reason, root_cause, traceback_text


def raised(outer: Exception, cause: BaseException | None = None) -> BaseException:
    with pytest.raises(type(outer)) as caught:
        raise outer from cause
    return caught.value


class FakeAttempt:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def exception(self) -> BaseException:
        return self._error


class RetryError(Exception):
    """Like tenacity's: it names the attempt and hides the error."""

    def __init__(self, error: BaseException) -> None:
        self.last_attempt = FakeAttempt(error)
        super().__init__("<Future at 0x7f>")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (raised(RuntimeError("scoring"), KeyError("x")), "KeyError: 'x'"),
        (RetryError(RetryError(OSError("connection refused"))), "OSError: connection refused"),
        (ExceptionGroup("several", [ValueError("first"), KeyError("second")]), "ValueError: first"),
    ],
)
def test_the_root_cause_is_told_in_one_line(error: BaseException, line: str):
    assert describe(error) == line


def test_an_exception_that_was_only_met_on_the_way_is_not_the_cause():
    error = ValueError("no answer in the text")
    error.__context__ = KeyError("x")
    assert describe(error) == "ValueError: no answer in the text"


def test_causes_that_go_in_a_circle_end():
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert root_cause(first) in (first, second)
    assert fail_reason(first) is FailReason.ENV_ERROR


def test_long_texts_are_cut():
    assert len(describe(ValueError("x" * 10_000))) <= 500
    assert len(traceback_text(raised(ValueError("x" * 100_000)))) < 21_000


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("x"), FailReason.ENV_ERROR),
        (TimeoutError(), FailReason.ENV_ERROR),
        (RolloutTimeout(), FailReason.TIMEOUT),
        (InferenceError("down"), FailReason.INFERENCE_ERROR),
        (raised(RuntimeError("call"), InferenceError("down")), FailReason.INFERENCE_ERROR),
        (raised(InferenceError("down"), httpx.ConnectError("refused")), FailReason.INFERENCE_ERROR),
        (RetryError(InferenceError("down")), FailReason.INFERENCE_ERROR),
        (openai.APITimeoutError(httpx.Request("POST", "http://x")), FailReason.INFERENCE_ERROR),
    ],
)
def test_whose_fault_it_was_is_known_however_it_was_wrapped(error: BaseException, reason: FailReason):
    assert fail_reason(error) is reason
