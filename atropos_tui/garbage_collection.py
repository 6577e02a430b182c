"""Python's garbage collector: at rest while a program starts, and where somebody waits for an answer.

All that is made at the start stays, and looking for garbage in it takes a tenth of the time to the first picture. Later
a full collection stops everything for tens of milliseconds, which is felt if it comes between a key and its effect.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# After how many collections of the middle generation a full one comes.
_USUAL = 10
_RARE = 100


@contextmanager
def at_rest() -> Iterator[None]:
    """Collect nothing inside. What is there in the end is taken as lasting, and never looked through again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def in_quiet_moments() -> Iterator[None]:
    """Inside, full collections are made by `collect_if_due`; by themselves they come only if it is not called for long.

    The bound is some 700,000 new objects.
    """
    usual = gc.get_threshold()
    gc.set_threshold(usual[0], usual[1], _RARE)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def collect_if_due() -> None:
    """A full collection, if one would have come by itself."""
    if gc.isenabled() and gc.get_count()[2] >= _USUAL:
        gc.collect()
