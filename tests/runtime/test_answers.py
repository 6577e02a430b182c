"""What the trajectory API's answers mean: accepted, refused for good, or to be tried again."""

from __future__ import annotations

import email.utils
import time

import pytest

from atropos_tui.ledger.outcomes import DeliveredAs
from atropos_tui.runtime.answers import Accepted, Refused, TryAgain, UnknownEnv, read_answer


@pytest.mark.parametrize(
    ("content", "how"),
    [
        (b'{"status":"received"}', DeliveredAs.RECEIVED),
        (b'{"status":"received","duplicate":true}', DeliveredAs.RECEIVED),
        (b'{"status":"buffered","buffer_size":3}', DeliveredAs.BUFFERED),
        (b'{"status":"queued"}', DeliveredAs.RECEIVED),
        (b"{}", DeliveredAs.RECEIVED),
    ],
)
def test_a_json_object_with_2xx_accepts(content: bytes, how: DeliveredAs) -> None:
    assert read_answer(200, {}, content) == Accepted(how)
    assert read_answer(202, {}, content) == Accepted(how)


@pytest.mark.parametrize("content", [b"", b"ok", b"[]", b'{"status":"error"}', b'{"status":"failure"}', b"\xff", b"{"])
def test_anything_else_with_2xx_does_not(content: bytes) -> None:
    answer = read_answer(200, {}, content)
    assert isinstance(answer, TryAgain)
    assert answer.error.startswith("HTTP 200 with")


def test_an_unknown_environment_is_neither_refused_nor_just_tried_again() -> None:
    assert read_answer(404, {}, b"who?") == UnknownEnv("who?")


@pytest.mark.parametrize("status", [400, 402, 403, 405, 409, 410, 413, 422, 451])
def test_other_4xx_refuse(status: int) -> None:
    assert read_answer(status, {}, b"no") == Refused(status, "no")


@pytest.mark.parametrize("status", [100, 301, 302, 304, 307, 401, 408, 425, 429, 500, 502, 503, 504, 599])
def test_whatever_may_pass_is_tried_again(status: int) -> None:
    answer = read_answer(status, {}, b"busy")
    assert answer == TryAgain(f"HTTP {status}", "busy", broke=status == 500)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-7", 0.0), ("100000", 60.0), ("inf", 60.0), ("nan", 0.0), ("soon", 0.0), ("", 0.0)],
)
def test_the_wait_that_a_server_asks_for_is_read_within_bounds(told: str, seconds: float) -> None:
    answer = read_answer(503, {"retry-after": told}, b"")
    assert isinstance(answer, TryAgain)
    assert answer.retry_after == seconds


def test_the_wait_may_be_a_date() -> None:
    answer = read_answer(503, {"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)}, b"")
    assert isinstance(answer, TryAgain)
    assert 25 < answer.retry_after <= 30
    past = read_answer(503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"")
    assert past == TryAgain("HTTP 503")


def test_what_is_shown_of_an_answer_is_bounded_text() -> None:
    answer = read_answer(422, {}, b"\xff" * 100_000)
    assert isinstance(answer, Refused)
    assert answer.body == "\ufffd" * 4000
