"""Log records become events, whatever is in them."""

from __future__ import annotations

import logging

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import EventBase
from atropos_tui.runtime.logging_events import TEXT_LIMIT, LogEventHandler
from tests.runtime.serving_parts import RecordedEvents


def logger_into(sink: RecordedEvents) -> logging.Logger:
    logger = logging.Logger("author.module")
    logger.addHandler(LogEventHandler(EventStream(sink)))
    return logger


def test_a_record_is_a_line_with_its_level_logger_and_traceback():
    seen = RecordedEvents()
    logger = logger_into(seen)
    logger.warning("%d of %d", 1, 2)
    try:
        raise KeyError("x")
    except KeyError:
        logger.exception("scoring")
    first, second = seen.of("log_line")
    assert (first.level, first.logger, first.text, first.traceback) == ("warning", "author.module", "1 of 2", "")
    assert (second.level, second.text) == ("error", "scoring")
    assert "KeyError: 'x'" in second.traceback


def test_a_record_that_cannot_be_formatted_is_told_as_it_is():
    seen = RecordedEvents()
    logger_into(seen).error("%d items", "many")
    assert seen.of("log_line")[0].text == "%d items"


def test_long_records_are_cut():
    seen = RecordedEvents()
    logger_into(seen).error("x" * 100_000)
    assert len(seen.of("log_line")[0].text) == TEXT_LIMIT


def test_a_sink_that_logs_does_not_call_itself():
    class Talking(RecordedEvents):
        def publish(self, event: EventBase) -> None:
            super().publish(event)
            logger.warning("again")

    seen = Talking()
    logger = logger_into(seen)
    logger.warning("once")
    assert [event.text for event in seen.of("log_line")] == ["once"]
