"""Reading JSON answers of aiohttp, for environments that speak to servers of their own."""

from __future__ import annotations

import logging
from typing import Any


async def parse_http_response(resp: Any, logger: logging.Logger | None = None) -> Any:
    """The JSON of an answer. Logs the body of one that is an error or is no JSON, and raises what aiohttp raises."""
    try:
        resp.raise_for_status()
        return await resp.json()
    except Exception as error:
        body = await resp.text()
        status = getattr(error, "status", "unknown")
        (logger or logging.getLogger(__name__)).error("HTTP %s: %s; the answer was: %s", status, error, body)
        raise
