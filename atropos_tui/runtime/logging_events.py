"""Log records as events, so that the screen and the record have them."""

from __future__ import annotations

import logging
import threading

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import LogLine
from atropos_tui.runtime.failures import traceback_text

TEXT_LIMIT = 4000


class LogEventHandler(logging.Handler):
    """Publishes each record as a LogLine. A record that cannot be formatted is published as its raw message."""

    def __init__(self, stream: EventStream, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._stream = stream
        self._publishing = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        # A sink that logs must not call us again.
        if getattr(self._publishing, "now", False):
            return
        self._publishing.now = True
        try:
            error = record.exc_info[1] if record.exc_info else None
            self._stream.publish(
                LogLine,
                level=record.levelname.lower(),
                logger=record.name,
                text=_text(record)[:TEXT_LIMIT],
                traceback=traceback_text(error) if error else record.exc_text or "",
            )
        finally:
            self._publishing.now = False


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  arguments that don't fit the author's format string
        return str(record.msg)
