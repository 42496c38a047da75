"""Errors of roles, rings, TMA boxes and warpgroup products, each with its code and the user's line."""

# ruff: noqa: ARG001
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

from argus.language import (
    Ring,
    Swizzle,
    Tensor,
    arrive,
    barrier,
    bf16,
    copy,
    cp_async,
    e4m3,
    elected,
    f32,
    loop,
    mma,
    persistent,
    registers,
    role,
    segments,
    shared,
    spread,
    sync,
    tma,
    warp,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)
from tests.core.dsl.hopper_tracing import fill_once, refused, small_ring
from tests.core.dsl.tracing import Fault, Faults

faulty = Faults()


@faulty("E202", "is nested in another body")
def role_in_a_loop(A: Tensor, C: Tensor) -> None:
    for _ in loop(2):
        with role("math", warpgroup(0)):
            pass


@faulty("E202", "shares warp 0 with role `one`")
def roles_overlap(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        pass
    with role("two", warpgroups(0, 1)):
        pass


@faulty("E202", "two roles are called `one`")
def roles_of_one_name(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        pass
    with role("one", warpgroup(1)):
        pass


@faulty("E202", "barrier `one` has the name of a role")
def a_barrier_named_as_a_role(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        sync("one", threads=256)


@faulty("E202", "barrier `two` has the name of a role")
def a_role_named_as_a_barrier(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        arrive("two", threads=256)
    with role("two", warpgroup(1)):
        sync("two", threads=256)


@faulty("E202", "the kernel has 12")
def too_many_warps(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(3)):
        pass


@faulty("E202", "not whole warpgroups")
def registers_of_a_warp(A: Tensor, C: Tensor) -> None:
    with role("one", warp(1), registers=40):
        pass


@faulty("E202", "30 registers a thread")
def odd_registers(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(1), registers=30):
        pass


@faulty("E202", "a statement between two roles")
def between_roles(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        pass
    sync()
    with role("two", warpgroup(1)):
        pass


@faulty("E106", "are not consecutive")
def warpgroups_apart(A: Tensor, C: Tensor) -> None:
    warpgroups(0, 2)


@faulty("E201", "used outside its role")
def number_of_another_role(A: Tensor, C: Tensor) -> None:
    boxes = shared(bf16, (2, 64, 64), swizzle=128)
    with role("one", warpgroups(0, 1)) as wg:
        pass
    with role("two", warpgroup(2).elected):
        copy(boxes[wg], C.tile((64, 64), (0, 0)), via=tma, edge=0)


@faulty("E216", "belongs to the block")
def registers_of_the_block(A: Tensor, C: Tensor) -> None:
    x = registers(f32, spread((384, 64), threads=384, vector=8))
    with role("one", warpgroups(0, 1, 2)):
        x[:] = 0.0


@faulty("E214", "one elected thread runs a statement that needs all 128 threads")
def a_meeting_by_one(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)), elected():
        sync()


@faulty("E215", "is a single-thread instruction, and 128 threads run it")
def a_box_by_many(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with role("one", warpgroup(0)):
        copy(box, C.tile((64, 64), (0, 0)), via=tma, edge=0)


@faulty("E208", "completes on a barrier, and none is named")
def a_load_without_a_barrier(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with elected():
        copy(A.tile((64, 64), (0, 0)), box, via=tma, edge=0)


@faulty("E208", "is filled by 128 threads")
def filled_by_many(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    with role("one", warpgroup(0)), ring.fill():
        pass


@faulty("E208", "in some uses only")
def filled_now_and_then(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    with role("load", warpgroup(0).elected):
        for k in loop(4):
            with ring.fill() as slot, when(k > 0):
                copy(A.tile((64, 64), (0, k)), slot.a, via=tma, edge=0)


@faulty("E208", "nothing is copied into a slot of `ring")
def filled_with_nothing(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    with role("load", warpgroup(0).elected), ring.fill():
        pass


@faulty("E208", "are filled, none is released")
def never_released(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    fill_once(ring, A)


@faulty("E208", "is made inside a role, loop or branch")
def a_barrier_in_a_role(A: Tensor, C: Tensor) -> None:
    with role("one", warpgroup(0)):
        barrier(1)


@faulty("E501", "a slot filled by `cp_async_16` is not built yet")
def filled_by_a_warp(A: Tensor, C: Tensor) -> None:
    ring = Ring(2, a=shared(bf16, (1, 64)))
    with role("load", warpgroup(0).elected), ring.fill() as slot:
        copy(A.tile((1, 64), (0, 0)), slot.a, via=cp_async, by=spread((1, 64), threads=8, vector=8), edge=0)


@faulty("E104", "`fill` was left before its end")
def fill_left_early(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    with role("load", warpgroup(0).elected):
        for k in range(2):
            with ring.fill() as slot:
                copy(A.tile((64, 64), (0, k)), slot.a, via=tma, edge=0)
                break


@faulty("E106", "has no tile `b`")
def no_such_tile(A: Tensor, C: Tensor) -> None:
    ring = small_ring()
    with role("math", warpgroup(1)):
        ring.wait().b  # noqa: B018 reason: the look-up is the fault


@faulty("E106", "is a part of `shared")
def ring_of_a_part(A: Tensor, C: Tensor) -> None:
    Ring(2, a=shared(bf16, (64, 64), swizzle=128).tile((32, 64), (0, 0)))


@faulty("E106", "has 1 axes, a matrix two")
def row_turned(A: Tensor, C: Tensor) -> None:
    _ = A[0].mT


@faulty("E106", "no single contiguous axis in this view of `A`")
def every_second_column(A: Tensor, C: Tensor) -> None:
    _ = A.gather((8, 8), lambda i, j: (i, 2 * j), outside=0).fastest


@faulty("E106", "is not `shared(...)` made for it")
def a_slot_of_a_tensor(A: Tensor, C: Tensor) -> None:
    Ring(2, a=A)


@faulty("E211", "a swizzle over 48 bytes")
def no_such_span(A: Tensor, C: Tensor) -> None:
    shared(bf16, (64, 64), swizzle=48)


@faulty("E108", "rows of 256 bytes are not multiples of 16 of at most 128")
def rows_beyond_the_span(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 128), swizzle=Swizzle(3, 3, 3))
    with elected():
        copy(box, C.tile((64, 128), (0, 0)), via=tma, edge=0)


@faulty("E108", "an extent beyond 256")
def rows_beyond_the_box(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (512, 64), swizzle=128)
    with elected():
        copy(box, C.tile((512, 64), (0, 0)), via=tma, edge=0)


@faulty("E108", "are not contiguous")
def a_box_with_gaps(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with elected():
        copy(box.tile((64, 32), (0, 0)), C.tile((64, 32), (0, 0)), via=tma, edge=0)


@faulty("E108", "does not begin at a multiple of 1024 bytes")
def a_box_between_periods(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with elected():
        copy(box.tile((4, 64), (1, 0)), C.tile((4, 64), (0, 0)), via=tma, edge=0)


@faulty("E108", "is not a box of the tensor")
def a_transposed_box(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with elected():
        copy(box, C.T.tile((64, 64), (0, 0)), via=tma, edge=0)


@faulty("E106", "does not read 1 outside the tensor")
def another_edge(A: Tensor, C: Tensor) -> None:
    box = shared(bf16, (64, 64), swizzle=128)
    with elected():
        copy(box, C.tile((64, 64), (0, 0)), via=tma, edge=1)


@faulty("E218", "rows are 128 bytes, the swizzle spans 16")
def factor_without_a_swizzle(A: Tensor, C: Tensor) -> None:
    tile = shared(bf16, (64, 64))
    mm = wgmma(bf16, n=64)
    with role("math", warpgroup(0)):
        mma(mm, registers(f32, mm.C), tile, tile, init=True)


@faulty("E206", "is read from shared memory")
def factor_in_registers(A: Tensor, C: Tensor) -> None:
    mm = wgmma(bf16, n=64)
    with role("math", warpgroup(0)):
        acc = registers(f32, mm.C)
        mma(mm, acc, acc, acc)


@faulty("E203", "expected 64 rows")
def factor_of_other_rows(A: Tensor, C: Tensor) -> None:
    tile = shared(bf16, (128, 64), swizzle=128)
    mm = wgmma(bf16, n=128)
    with role("math", warpgroup(0)):
        mma(mm, registers(f32, mm.C), tile, tile, init=True)


@faulty("E203", "expected 64 rows")
def product_of_other_depths(A: Tensor, C: Tensor) -> None:
    a, b = shared(bf16, (64, 64), swizzle=128), shared(bf16, (32, 64), swizzle=128)
    mm = wgmma(bf16, n=64)
    with role("math", warpgroup(0)):
        mma(mm, registers(f32, mm.C), a, b, init=True)


@faulty("E109", "a layout of 128 threads in a role `math` of 32")
def registers_of_other_threads(A: Tensor, C: Tensor) -> None:
    with role("math", warp(0)):
        registers(f32, wgmma(bf16, n=64).C)


@faulty("E219", "a wait on `wgmma`, but nothing is issued to it here")
def waits_for_nothing(A: Tensor, C: Tensor) -> None:
    with role("math", warpgroup(0)):
        wgmma.wait(0)


@faulty("E108", "no `wgmma` multiplies bf16 with 12 columns")
def no_such_columns(A: Tensor, C: Tensor) -> None:
    wgmma(bf16, n=12)


@faulty("E108", "no `wgmma` multiplies e4m3 with 64 columns and B along n")
def bytes_along_n(A: Tensor, C: Tensor) -> None:
    wgmma(e4m3, n=64, b_major="n")


@faulty("E109", "k 24 is not a multiple of 16")
def half_an_execution(A: Tensor, C: Tensor) -> None:
    wgmma(bf16, n=64, a="registers", k=24)


@faulty("E106", "the grid is declared twice")
def two_grids(A: Tensor, C: Tensor) -> None:
    persistent((4,))
    persistent((4,))


@faulty("E106", "the grid is declared twice")
def segments_beside_a_grid(A: Tensor, C: Tensor) -> None:
    persistent((4,))
    segments(3, lambda _: (4,))


@faulty("E106", "not iterated by a `for` statement")
def segments_in_a_list(A: Tensor, C: Tensor) -> None:
    list(segments(3, lambda _: (4,)))


@faulty("E106", "not iterated by a `for` statement")
def tiles_in_a_list(A: Tensor, C: Tensor) -> None:
    list(persistent((4,)))


@faulty("E106", "cannot synchronise with itself")
def one_thread_meets(A: Tensor, C: Tensor) -> None:
    with role("load", warpgroup(0).elected):
        sync()


@faulty("E106", "`wgmma` has no wait for 'reads'")
def reads_of_products(A: Tensor, C: Tensor) -> None:
    wgmma.wait(0, of="reads")


@faulty("E106", "has no part (4, 0)")
def a_part_beyond(A: Tensor, C: Tensor) -> None:
    with role("math", warpgroup(0)):
        registers(f32, wgmma(bf16, n=64).C).tile((64, 16), (4, 0))


@faulty("E106", "immutable")
def a_part_assigned(A: Tensor, C: Tensor) -> None:
    with role("math", warpgroup(0)):
        registers(f32, wgmma(bf16, n=64).C).tile((64, 16), (0, 0))[:] = 0.0


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    found = refused(fault.body)
    assert found.code == fault.code, found
    assert [word for word in fault.words if word not in found.message] == [], found.message
    assert found.primary.span.frame is not None
