"""Groups of `cp.async`: their commits, the waits that cover them, and slots that alternate between iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from argus.core.algebra import TRUE
from argus.language import (
    Int,
    Tensor,
    bf16,
    copy,
    cp_async,
    elected,
    fence,
    load,
    loop,
    shared,
    sync,
    when,
)
from tests.core.proof.queries import obligations_of
from tests.core.proof.visibility_kernels import BY, box, drain, store, traced

WORDS = ("is complete, and a barrier follows", "proxy fence by the writers", "barrier orders")
Publish = Callable[[Int], None]


def start(A: Tensor, to: Tensor) -> None:
    copy(A.tile((64, 16), (0, 0)), to, via=cp_async, by=BY, edge=0)


def failed(body: Callable[[Tensor, Tensor], None]) -> set[str]:
    every = [each for each in obligations_of(traced(body)) if any(word in each.what for word in WORDS)]
    assert every, "nothing is asked at all"
    return {each.invariant for each in every if each.goal is not TRUE}


def published(_: Int) -> None:
    cp_async.commit()
    cp_async.wait(0)
    fence("async proxy")
    sync()


def behind_an_empty_group(_: Int) -> None:
    cp_async.commit()
    cp_async.commit()
    cp_async.wait(1)
    fence("async proxy")
    sync()


def not_committed(_: Int) -> None:
    cp_async.wait(0)
    fence("async proxy")
    sync()


def committed_by_one(_: Int) -> None:
    with elected():
        cp_async.commit()
    cp_async.wait(0)
    fence("async proxy")
    sync()


def waited_for_by_one(_: Int) -> None:
    cp_async.commit()
    with elected():
        cp_async.wait(0)
    fence("async proxy")
    sync()


def committed_in_one_case(size: Int) -> None:
    with when(size < 64):
        cp_async.commit()
    cp_async.wait(0)
    fence("async proxy")
    sync()


def one_may_be_pending(_: Int) -> None:
    cp_async.commit()
    cp_async.wait(1)
    fence("async proxy")
    sync()


def met_before_the_wait(_: Int) -> None:
    cp_async.commit()
    sync()
    cp_async.wait(0)
    fence("async proxy")


@pytest.mark.parametrize("publish", [published, behind_an_empty_group], ids=lambda each: each.__name__)
def test_a_copy_whose_group_is_awaited_is_visible(publish: Publish) -> None:
    assert failed(_stored(publish)) == set()


@pytest.mark.parametrize(
    "publish",
    [
        *(not_committed, committed_by_one, waited_for_by_one, committed_in_one_case),
        *(one_may_be_pending, met_before_the_wait),
    ],
    ids=lambda each: each.__name__,
)
def test_a_copy_that_may_be_in_flight_is_not_visible(publish: Publish) -> None:
    assert failed(_stored(publish)) == {"I12"}


def _stored(publish: Publish) -> Callable[[Tensor, Tensor], None]:
    def body(A: Tensor, C: Tensor) -> None:
        tile = box()
        start(A, tile)
        publish(A.shape[0])
        store(tile, C)
        drain()

    return body


@pytest.mark.parametrize(("meets", "codes"), [(True, set[str]()), (False, {"I31"})])
def test_an_ordinary_read_waits_and_meets(meets: bool, codes: set[str]) -> None:
    def body(A: Tensor, _: Tensor) -> None:
        tile = box()
        start(A, tile)
        cp_async.commit()
        cp_async.wait(0)
        if meets:
            sync()
        load(tile, BY)

    assert failed(body) == codes


def _in_turn(slots: int, ahead: int, pending: int) -> Callable[[Tensor, Tensor], None]:
    """Copies so many iterations ahead of what is read, of slots that take turns."""

    def body(A: Tensor, _: Tensor) -> None:
        tiles = shared(bf16, (slots, 64, 16), swizzle=32)
        for k in loop(A.shape[0]):
            cp_async.wait(pending)
            sync()
            load(tiles[k % slots], BY)
            sync()
            start(A, tiles[(k + ahead) % slots])
            cp_async.commit()

    return body


def test_slots_of_different_iterations_are_distinguished() -> None:
    assert failed(_in_turn(slots=3, ahead=2, pending=1)) == set()
    assert failed(_in_turn(slots=3, ahead=2, pending=2)) == {"I31"}
    assert failed(_in_turn(slots=4, ahead=3, pending=2)) == set()
    assert failed(_in_turn(slots=2, ahead=2, pending=2)) == {"I31"}


@pytest.mark.parametrize(("meets", "codes"), [(True, set[str]()), (False, {"I36"})])
def test_a_loop_that_runs_again_knows_nothing_of_its_slots_before(meets: bool, codes: set[str]) -> None:
    """Within a run slots differ; the first copy of the next run may go to the slot that was read last."""

    def body(A: Tensor, _: Tensor) -> None:
        tiles = shared(bf16, (3, 64, 16), swizzle=32)
        for _tile in loop(3):
            for k in loop(A.shape[0]):
                start(A, tiles[(k + 1) % 3])
                cp_async.commit()
                cp_async.wait(0)
                sync()
                load(tiles[k % 3], BY)
            if meets:
                sync()

    assert failed(body) == codes


def _after_a_prologue(filled: Sequence[int], *, pending: int = 1, first: int = 0) -> Callable[[Tensor, Tensor], None]:
    """Stages filled before the loop, a group each, then the stage two iterations ahead; three stages, so that the
    stage read is `k % 3`.
    """

    def body(A: Tensor, _: Tensor) -> None:
        tiles = shared(bf16, (3, 64, 16), swizzle=32)
        _fill_and_read(A, tiles, filled, pending, first)

    return body


def _fill_and_read(A: Tensor, tiles: Tensor, filled: Sequence[int], pending: int, first: int) -> None:
    for stage in filled:
        start(A, tiles[stage])
        cp_async.commit()
    for k in loop(first, A.shape[0]):
        cp_async.wait(pending)
        sync()
        load(tiles[k % 3], BY)
        start(A, tiles[(k + 2) % 3])
        cp_async.commit()


@pytest.mark.parametrize("first", [0, 1, 5])
def test_stages_filled_before_a_loop_are_told_from_the_stage_that_is_read(first: int) -> None:
    one, two, three = first % 3, (first + 1) % 3, (first + 2) % 3
    assert failed(_after_a_prologue((one, two), first=first)) == set()
    assert failed(_after_a_prologue((two, one), first=first)) == {"I31"}
    assert failed(_after_a_prologue((one, two), pending=2, first=first)) == {"I31"}
    assert failed(_after_a_prologue((one, three), first=first)) == {"I31"}  # the second stage is filled twice


@pytest.mark.parametrize(("meets", "codes"), [(True, set[str]()), (False, {"I31", "I36"})])
def test_a_prologue_that_runs_again_may_fill_a_stage_that_was_read_last(meets: bool, codes: set[str]) -> None:
    def body(A: Tensor, _: Tensor) -> None:
        tiles = shared(bf16, (3, 64, 16), swizzle=32)
        for _tile in loop(3):
            _fill_and_read(A, tiles, (0, 1), 1, 0)
            if meets:
                cp_async.wait(0)
                sync()

    assert failed(body) == codes
