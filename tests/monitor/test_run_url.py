"""URLs of runs, as people write them."""

from __future__ import annotations

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.run_url import checked_url


@pytest.mark.parametrize("url", ["http://localhost:7777", "https://node17", "http://[::1]:80/", "http://a:b@node:1"])
def test_what_names_a_host_is_taken_as_it_is(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.parametrize(
    "text",
    ["node17:7777", "ftp://node17", "http://", "http://[::1", "http://h:99999", "http://h:0", "http://x y:1", ""],
)
def test_what_does_not_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no URL.*; give http://HOST:PORT"):
        checked_url(text)
