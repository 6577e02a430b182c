"""The garbage collector rests while a program starts, and afterwards works when nobody waits."""

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


def collections_of_the_middle_generation(count: int) -> None:
    for _ in range(count):
        gc.collect(1)


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def test_a_full_collection_comes_on_demand_when_it_is_due() -> None:
    gc.collect()
    collections_of_the_middle_generation(9)
    before = full_collections()
    garbage_collection.collect_if_due()
    assert full_collections() == before
    collections_of_the_middle_generation(1)
    garbage_collection.collect_if_due()
    assert full_collections() == before + 1


def test_none_comes_on_demand_at_rest() -> None:
    with garbage_collection.at_rest():
        collections_of_the_middle_generation(11)
        before = full_collections()
        garbage_collection.collect_if_due()
        assert full_collections() == before


def test_full_collections_come_by_themselves_again_afterwards() -> None:
    usual = gc.get_threshold()
    with garbage_collection.in_quiet_moments():
        assert gc.get_threshold()[2] > usual[2]
    assert gc.get_threshold() == usual
