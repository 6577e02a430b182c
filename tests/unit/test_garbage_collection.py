"""The garbage collector rests while a program starts, and never longer."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from atropos_tui import garbage_collection


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_inside() -> None:
    with garbage_collection.at_rest():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_made_inside_is_not_looked_through_again() -> None:
    before = gc.get_freeze_count()
    with garbage_collection.at_rest():
        made = [[number] for number in range(1000)]
    assert gc.get_freeze_count() >= before + len(made)


def test_it_goes_on_after_a_failure() -> None:
    with pytest.raises(RuntimeError), garbage_collection.at_rest():
        raise RuntimeError
    assert gc.isenabled()


def test_who_rests_already_goes_on_resting() -> None:
    with garbage_collection.at_rest():
        with garbage_collection.at_rest():
            pass
        assert not gc.isenabled()
