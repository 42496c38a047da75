"""The thresholds of garbage collection: higher within a proof, as they were after it."""

from __future__ import annotations

import gc

import pytest

from argus.verifier.garbage import few_collections


def test_thresholds_are_higher_and_then_as_before() -> None:
    usual = gc.get_threshold()
    with few_collections():
        inside = gc.get_threshold()
        with few_collections():
            assert gc.get_threshold() == inside
        assert gc.get_threshold() == inside

    assert inside[0] > usual[0]
    assert inside[1:] == usual[1:]
    assert gc.get_threshold() == usual


def test_they_are_as_before_after_an_error() -> None:
    usual = gc.get_threshold()
    with pytest.raises(ValueError, match="within"), few_collections():
        raise ValueError("within")

    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_collections_that_are_off_or_rare_stay_so(first: int) -> None:
    usual = gc.get_threshold()
    gc.set_threshold(first, *usual[1:])
    try:
        with few_collections():
            assert gc.get_threshold()[0] == first
    finally:
        gc.set_threshold(*usual)


def test_what_is_left_is_old() -> None:
    """The next collection of young objects need not look at it."""
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.unfreeze()  # what tests import, which a session of tests freezes
    gc.set_threshold(700, *usual[1:])
    try:
        with few_collections():
            made = [[number] for number in range(1000)]

        young = {id(each) for each in gc.get_objects(generation=0)}
        assert not any(id(each) in young for each in made)
        assert gc.get_freeze_count() == 0
    finally:
        gc.set_threshold(*usual)
        if frozen:
            gc.freeze()
