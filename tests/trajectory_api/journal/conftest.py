"""Disks that take no more."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest


@pytest.fixture
def small_files() -> Iterator[None]:
    """As on a full disk: the operating system takes no more than 300,000 bytes into a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
