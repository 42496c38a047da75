"""Visibility for the asynchronous proxy: each step of an access's progress, and what fails without it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from attrs import evolve

from argus.core.algebra import TRUE
from argus.core.ir import Fence, For, One, Sync, walk
from argus.core.proof.sync.progress import State
from argus.core.proof.sync.visibility import PATH_RULE, Visibility
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.language import (
    Int,
    Tensor,
    bf16,
    bulk,
    copy,
    elected,
    fence,
    loop,
    registers,
    shared,
    sync,
    tma,
    wgmma,
    when,
)
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates, with_stmts
from tests.core.proof.queries import obligations_of
from tests.core.proof.rings import changed, every
from tests.core.proof.visibility_kernels import BY, Body, asked, box, drain, failed, failing, store, traced, write
from tests.verifier.switched_off_checks import load_edited

# -- writes, and what reads them asynchronously -----------------------------------------------------------------


def test_a_write_needs_fence_and_barrier_before_a_bulk_store() -> None:
    def body(_: Tensor, C: Tensor) -> None:
        tile = box()
        write(tile)
        fence("async proxy")
        sync()
        store(tile, C)
        drain()

    assert failing(body) == set()


def no_fence(tile: Tensor, _: Int) -> None:
    write(tile)
    sync()


def no_meeting(tile: Tensor, _: Int) -> None:
    write(tile)
    fence("async proxy")


def fence_before_the_write(tile: Tensor, _: Int) -> None:
    fence("async proxy")
    write(tile)
    sync()


def fence_by_one(tile: Tensor, _: Int) -> None:
    write(tile)
    with elected():
        fence("async proxy")
    sync()


def fence_in_one_case(tile: Tensor, size: Int) -> None:
    write(tile)
    with when(size < 64):
        fence("async proxy")
    sync()


def meeting_in_one_case(tile: Tensor, size: Int) -> None:
    write(tile)
    fence("async proxy")
    with when(size < 64):
        sync()


def written_again(tile: Tensor, _: Int) -> None:
    write(tile)
    fence("async proxy")
    sync()
    write(tile)
    sync()


@pytest.mark.parametrize(
    "publish",
    [no_fence, no_meeting, fence_before_the_write, fence_by_one, fence_in_one_case, meeting_in_one_case, written_again],
    ids=lambda each: each.__name__,
)
def test_a_write_that_is_not_published_is_not_seen(publish: Callable[[Tensor, Int], None]) -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = box()
        publish(tile, A.shape[0])
        store(tile, C)
        drain()

    assert failing(body) == {"I12"}


def by_the_elected_thread() -> None:
    with elected():
        fence("async proxy")


def by_all() -> None:
    fence("async proxy")


def before_the_meeting() -> None:
    with elected():
        fence("async proxy")
    sync()


def presumptions(behind: Callable[[], None], *, meets: bool = True) -> set[str]:
    def body(_: Tensor, C: Tensor) -> None:
        tile = box()
        write(tile)
        if meets:
            sync()
        behind()
        store(tile, C)
        drain()

    found = [each for each in asked(traced(body)) if "proxy fence by the writers" in each.what]
    assert found
    assert {each.goal is TRUE for each in found} == {True} or not any(each.presumed for each in found)
    return {each.presumed for each in found}


@pytest.mark.parametrize("behind", [by_the_elected_thread, by_all], ids=lambda each: each.__name__)
def test_a_fence_on_the_readers_side_alone_rests_on_a_named_assumption(behind: Callable[[], None]) -> None:
    assert presumptions(behind) == {PATH_RULE}


def test_the_assumption_needs_a_barrier_before_the_fence() -> None:
    assert presumptions(before_the_meeting, meets=False) == {""}


def test_a_product_of_all_threads_needs_the_fence_of_all() -> None:
    kernel = templates(CORPUS / "proved" / "real_fuser_4814.py")[0].trace()
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Proved)
    assert PATH_RULE in verdict.assumptions
    (whole,) = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Fence) and stmt.kind == "async_proxy"]
    found = verify(with_stmts(kernel, whole, (One((evolve(whole),)),)), solver="z3").verdict
    assert not isinstance(found, Proved)


def test_a_false_alarm_is_proved_under_the_named_assumption_and_the_others_without_it() -> None:
    for name, rests in (("real_flash_attention_2462", True), ("stores_of_boxes", False)):
        verdict = verify(templates(CORPUS / "proved" / f"{name}.py")[0], solver="z3").verdict
        assert isinstance(verdict, Proved)
        assert (PATH_RULE in verdict.assumptions) is rests


def test_conditional_fences_do_not_count() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = box()
        write(tile)
        with when(A.shape[0] < 64):
            fence("async proxy")
        with when(A.shape[0] >= 64):
            fence("async proxy")
        sync()
        store(tile, C)
        drain()

    # One of the two is always taken, which branches followed apart do not show: sound, and less than could be said.
    assert failing(body) == {"I12"}


# -- ordinary reads and writes -----------------------------------------------------------------------------------


def exchanged(*, first: bool = True, second: bool = True, by: bool = True) -> Body:
    """A tile is written by rows and read as a product's result, then written again. by: read by other threads."""

    def body(A: Tensor, C: Tensor) -> None:
        tile, held, other = box(), registers(bf16, BY), registers(bf16, wgmma(bf16, n=16).C)
        copy(A.tile((64, 16), (0, 0)), held, edge=0)
        copy(held, tile)
        if first:
            sync()
        copy(tile, other if by else held)
        if second:
            sync()
        copy(held, tile)
        copy(other if by else held, C.tile((64, 16), (0, 0)), edge=0)

    return body


def test_a_barrier_orders_writes_and_reads_of_different_threads() -> None:
    assert failing(exchanged()) == set()
    assert failing(exchanged(first=False)) == {"I5"}
    assert failing(exchanged(second=False)) == {"I36"}
    assert failing(exchanged(first=False, second=False)) == {"I5", "I36"}


def test_one_thread_needs_no_barrier() -> None:
    kernel_ = traced(exchanged(first=False, second=False, by=False))
    assert not [each for each in obligations_of(kernel_) if "meeting orders" in each.what]


def test_two_writes_of_different_threads_are_ordered() -> None:
    def of(*, met: bool) -> Body:
        def body(A: Tensor, C: Tensor) -> None:
            tile, held = box(), registers(bf16, BY)
            copy(A.tile((64, 16), (0, 0)), held, edge=0)
            write(tile)
            if met:
                sync()
            copy(held, tile)
            sync()
            copy(tile, held)
            copy(held, C.tile((64, 16), (0, 0)), edge=0)

        return body

    assert failing(of(met=True)) == set()
    assert failing(of(met=False)) == {"I5"}


def test_a_loop_brings_reads_before_the_next_writes() -> None:
    def of(*, met: bool) -> Body:
        def body(A: Tensor, C: Tensor) -> None:
            tile, held, other = box(), registers(bf16, BY), registers(bf16, wgmma(bf16, n=16).C)
            for m in loop(A.shape[0]):
                copy(A.tile((64, 16), (m, 0)), held, edge=0)
                copy(held, tile)
                sync()
                copy(tile, other)
                if met:
                    sync()
                copy(other, C.tile((64, 16), (m, 0)), edge=0)

        return body

    assert failing(of(met=True)) == set()
    assert failing(of(met=False)) == {"I36"}


def test_slots_that_the_loop_chooses_may_be_the_same() -> None:
    def of(*, met: bool) -> Body:
        def body(A: Tensor, C: Tensor) -> None:
            tiles = shared(bf16, (2, 64, 16), swizzle=32)
            held, other = registers(bf16, BY), registers(bf16, wgmma(bf16, n=16).C)
            for m in loop(A.shape[0]):
                copy(A.tile((64, 16), (m, 0)), held, edge=0)
                copy(held, tiles[m % 2])
                if met:
                    sync()
                copy(tiles[m % 2], other)
                copy(other, C.tile((64, 16), (m, 0)), edge=0)

        return body

    assert "I5" not in failing(of(met=True))
    assert "I5" in failing(of(met=False))


# -- bulk stores -------------------------------------------------------------------------------------------------


def rewritten(*, pending: int | None = 0, met: bool = True, end: bool = True, tiles: int = 1) -> Body:
    """A tile is stored, then written and stored again, `tiles` of them in turn."""

    def body(A: Tensor, C: Tensor) -> None:
        several = shared(bf16, (tiles, 64, 16), swizzle=32)
        for m in range(tiles + 1):
            if m >= tiles:
                if pending is not None:
                    drain(pending)
                if met:
                    sync()
            write(several[m % tiles])
            fence("async proxy")
            sync()
            store(several[m % tiles], C, m)
        if end:
            drain()
        del A

    return body


def test_a_store_is_complete_and_synced_before_its_tile_is_written() -> None:
    assert failing(rewritten()) == set()
    assert failing(rewritten(pending=None)) == {"I13"}
    assert failing(rewritten(met=False)) == {"I13"}
    assert failing(rewritten(pending=1)) == {"I13"}


@pytest.mark.parametrize("tiles", [2, 3])
def test_as_many_stores_may_be_left_as_there_are_other_tiles(tiles: int) -> None:
    assert failing(rewritten(pending=tiles - 1, tiles=tiles)) == set()
    assert failing(rewritten(pending=tiles, tiles=tiles)) == {"I13"}


def test_no_store_outlives_the_block() -> None:
    assert failing(rewritten(end=False)) == {"I13"}


def test_a_store_counts_from_its_commit_on() -> None:
    def of(*, last: int) -> Body:
        def body(_: Tensor, C: Tensor) -> None:
            tile = box()
            write(tile)
            fence("async proxy")
            sync()
            with elected():
                copy(tile, C.tile((64, 16), (0, 0)), via=tma, edge=0)
                bulk.commit()
                bulk.wait(last)

        return body

    assert failing(of(last=0)) == set()
    assert failing(of(last=1)) == {"I13"}


def stored_in_a_loop(*, pending: int | None = 0, first: bool = True) -> Body:
    """first: the wait stands before the write, so that a store runs on under the next iteration's head."""

    def body(A: Tensor, C: Tensor) -> None:
        tile = box()
        for m in loop(A.shape[0]):
            if pending is not None and first:
                drain(pending)
            sync()
            write(tile)
            fence("async proxy")
            sync()
            with elected():
                copy(tile, C.tile((64, 16), (m, 0)), via=tma, edge=0)
                bulk.commit()
            if pending is not None and not first:
                drain(pending)
        drain()

    return body


def test_a_store_of_the_iteration_before_is_waited_for() -> None:
    assert failing(stored_in_a_loop()) == set()
    assert failing(stored_in_a_loop(first=False)) == set()
    assert failing(stored_in_a_loop(pending=None)) == {"I13"}
    assert failing(stored_in_a_loop(pending=1)) == {"I13"}


# -- meetings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"threads": 64}, {"barrier": "other"}, {"how": "arrive"}], ids=str)
def test_a_barrier_is_for_all_threads(fields: dict[str, object]) -> None:
    found = traced(exchanged())
    meeting = every(found, Sync)[0]
    assert "I5" in failed(changed(found, meeting, **fields))


def test_stages_that_nobody_fills_are_those_of_any_earlier_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a ring begins at a tile is unknown: of all tiles before this one alike, or records would have no end."""
    passed: Callable[..., State] = vars(Visibility)["_earlier"]
    numbers = count()

    def counted(self: Visibility, state: State, loop: For) -> State:
        assert next(numbers) < 100
        return passed(self, state, loop)

    monkeypatch.setattr(Visibility, "_earlier", counted)
    edit = "copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)", "pass"
    found = verify(load_edited("tiles_along_a_curve", edit).trace(), solver="z3", budget=Budget.about(1.0)).verdict

    assert isinstance(found, Refuted)
    assert next(numbers) > 1
