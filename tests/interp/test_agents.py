"""Agents beyond the ring GEMM: generic reads of a stage, single-thread copies, named barriers, registers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from argus.core.algebra import add, const, coord, eq, mul, sym
from argus.core.atoms.registry import atom_named
from argus.core.diagnostic import ArgusError
from argus.core.dtype import bf16, f32
from argus.core.index import Symbol
from argus.core.ir import (
    Alloc,
    Arrive,
    Await,
    Commit,
    Copy,
    Fence,
    If,
    Kernel,
    Mma,
    One,
    Role,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
    whole,
)
from argus.core.layout import TV, Layout
from argus.core.target import sm_90a
from argus.core.tiling import WarpgroupMma
from argus.interp.run import run
from argus.interp.search.schedule import ROLES_DIRECTED, Schedule
from tests.interp.pieces import barrier, event, fragment, one_thread, shared, tensor, view

M, N = Symbol("M", "size", 1), Symbol("N", "size", 1)
SIZES = {"M": 64, "N": 32}
ROWS = TV(Layout((4, 32), (512, 1)), Layout((8, 2), (64, 32)), (64, 32))
"""128 threads over a tile of (64, 32): 8 columns at once, 4 threads a row, then 32 rows further."""
SCHEDULES = (*ROLES_DIRECTED, Schedule("early", 0, "lowest"), *(Schedule("mixed", seed) for seed in range(4)))


def kernel(prologue: tuple[Stmt, ...], roles: tuple[Role, ...] = (), threads: int = 128) -> Kernel:
    source, target = tensor("A", bf16, M, N), tensor("B", bf16, M, N)
    thread = Symbol("thread", "thread", 0)
    joined = Roles(roles) if roles else None
    tags = Tag(whole(source), (("m", coord(0)), ("n", coord(1))))
    return Kernel("k", sm_90a, (source, target), (M, N), threads, (), (), thread, (tags, *prologue), joined)


def role(name: str, first: int, warps: int, agent: int, *body: Stmt) -> Role:
    number, thread = Symbol(f"{name}_i", "agent", 0), Symbol(f"{name}_t", "thread", 0)
    return Role(name, first, warps, agent, None, body, number, thread)


def refilled(*, meets: bool) -> Kernel:
    """Two boxes of rows through one slot, which ordinary loads read; `meets`: all have read before it goes back."""
    slot, full, empty = shared("slot", bf16, 64, 32), barrier("full", 1), barrier("empty", 1)
    held = fragment("held", bf16, ROWS, "math")
    source, target = tensor("A", bf16, M, N), tensor("B", bf16, M, N)
    load: list[Stmt] = []
    math: list[Stmt] = [Alloc(held)]
    for use in range(2):
        at = add(const(64 * use), coord(0)), coord(1)
        load.append(Await(event(empty, const(0)), const(use - 1)))
        load.append(Arrive(event(full, const(0)), 1, const(64 * 32 * 2)))
        box = one_thread(64, 32)
        signal = event(full, const(0))
        load.append(
            Copy(atom_named("tma_load_2d"), view(source, (64, 32), *at), whole(slot), box, edge=0, signal=signal)
        )
        math.append(Await(event(full, const(0)), const(use)))
        math.append(Copy(atom_named("ld_shared_b128"), whole(slot), whole(held), ROWS))
        math += [Sync("math", "meet", 128)] if meets else []
        math.append(One((Arrive(event(empty, const(0)), 1, const(0)),)))
        math.append(Copy(atom_named("st_global_b128"), whole(held), view(target, (64, 32), *at), ROWS, edge=0))
    setup = (Alloc(slot), Alloc(full, 1), Alloc(empty, 1), Fence("barrier_init"), Sync())
    tags = Tag(whole(source), (("m", coord(0)), ("n", coord(1))))
    roles = Roles((role("load", 0, 4, 1, *load), role("math", 4, 4, 128, *math)))
    thread = Symbol("thread", "thread", 0)
    return Kernel("k", sm_90a, (source, target), (M, N), 256, (), (), thread, (tags, *setup), roles)


def test_one_arrival_releases_only_the_reads_of_its_thread() -> None:
    sizes = {"M": 128, "N": 32}
    a = np.arange(128 * 32).reshape(128, 32).astype(ml_dtypes.bfloat16)
    for schedule in SCHEDULES:
        right = run(refilled(meets=True), sizes, {"A": a}, schedule)
        assert right.violations == ()
        assert np.array_equal(right.arrays["B"], a)
        wrong = run(refilled(meets=False), sizes, schedule=schedule, values=False).violations
        texts = {(violation.code, violation.message) for violation in wrong}
        assert ("I5", "`slot` is written by `load` while `math` reads it: nothing orders them") in texts


def through_shared(edit: str = "") -> Kernel:
    """B = A with each warp's rows stored by another warp, through `cp.async`, without roles."""
    source, target = tensor("A", bf16, M, N), tensor("B", bf16, M, N)
    box, held = shared("box", bf16, 64, 32), fragment("held", bf16, ROWS, "")
    turned = TV(Layout((4, 32), (512, 1)), Layout((8, 2), (64, 32)), (64, 32))
    flipped = view(box, (64, 32), add(63, mul(coord(0), -1)), coord(1))
    body: list[Stmt] = [
        Tag(whole(source), (("m", coord(0)), ("n", coord(1)))),
        Alloc(box),
        Alloc(held),
        Copy(atom_named("cp_async_16"), view(source, (64, 32), coord(0), coord(1)), whole(box), ROWS, edge=0),
    ]
    body += [] if edit == "no commit" else [Commit("cp_async")]
    body += [] if edit == "no wait" else [Wait("cp_async", 1 if edit == "weak wait" else 0)]
    body += [] if edit == "no barrier" else [Sync()]
    flip = view(target, (64, 32), add(63, mul(coord(0), -1)), coord(1))
    body += [Copy(atom_named("ld_shared_b128"), flipped, whole(held), turned)]
    body += [Copy(atom_named("st_global_b128"), whole(held), flip, turned, edge=0)]
    return Kernel("k", sm_90a, (source, target), (M, N), 128, (), (), Symbol("thread", "thread", 0), tuple(body))


def test_cp_async_is_waited_for_before_the_barrier() -> None:
    a = np.arange(64 * 32).reshape(64, 32).astype(ml_dtypes.bfloat16)
    for style in ("early", "late", "mixed"):
        schedule = Schedule(style, 3)
        right = run(through_shared(), SIZES, {"A": a}, schedule)
        assert right.violations == ()
        assert np.array_equal(right.arrays["B"], a)
        for edit in ("no commit", "no wait", "weak wait"):
            found = run(through_shared(edit), SIZES, schedule=schedule, values=False).violations
            assert "I31" in {violation.code for violation in found}, (edit, schedule)
        found = run(through_shared("no barrier"), SIZES, schedule=schedule, values=False).violations
        assert "I5" in {violation.code for violation in found}


def test_a_barrier_that_some_threads_miss_deadlocks() -> None:
    number = Symbol("i", "agent", 0, 1)
    some = If(eq(sym(number), 0), (Sync("both", "meet", 256),))
    pair = Role("pair", 0, 8, 128, None, (some,), number, Symbol("t", "thread", 0))
    (found,) = run(kernel((), (pair,), 256), SIZES, values=False).violations
    assert found.code == "I9"
    text = "the wait never ends: `pair` 0, thread 0 waits for the barrier `both` (128 of 256 threads missing)"
    assert text in found.message


def test_a_barrier_with_different_thread_counts_is_reported() -> None:
    one = role("one", 0, 4, 128, Sync("both", "arrive", 256))
    two = role("two", 4, 4, 128, Sync("both", "meet", 128))
    (found,) = run(kernel((), (one, two), 256), SIZES, values=False).violations
    assert found.code == "I8"


def test_a_barrier_that_too_many_arrive_at_is_reported() -> None:
    full = barrier("full", 1)
    setup = (Alloc(full, 3), Fence("barrier_init"), Sync())
    body = Arrive(event(full, const(0)), 1, const(0))
    (found,) = run(kernel(setup, (role("one", 0, 4, 128, body),)), SIZES, values=False).violations
    assert found.code == "I8"
    assert found.message == "`full[0]` gets 32 arrivals in phase 0, but expects 3"


def test_a_barrier_that_is_not_initialised_is_reported() -> None:
    body = Await(event(barrier("full", 1), const(0)), const(0))
    (found,) = run(kernel((), (role("one", 0, 4, 1, body),)), SIZES, values=False).violations
    assert (found.code, found.message) == ("I14", "`full[0]` is used: `full` is not initialised")


@pytest.mark.parametrize("early", [False, True])
def test_registers_of_a_wgmma_in_flight_must_not_be_used(early: bool) -> None:
    """The fragment of A is read late: it must not be reloaded before the wait."""
    source, target = tensor("A", bf16, M, N), tensor("B", bf16, M, N)
    mm = WarpgroupMma(atom_named("wgmma_m64n32k16_f32_bf16_rs"), "k", 32)
    box, a = shared("box", bf16, 32, 32), fragment("a", bf16, mm.A, "math")
    acc, full = fragment("acc", f32, mm.C, "math"), barrier("full", 1)
    tile = view(source, (64, 32), coord(0), coord(1))
    fill = Copy(atom_named("ld_global_b32"), tile, whole(a), mm.A, edge=0)
    signal = event(full, const(0))
    rows = view(source, (32, 32), coord(0), coord(1))
    load: tuple[Stmt, ...] = (
        Arrive(signal, 1, const(32 * 32 * 2)),
        Copy(atom_named("tma_load_2d"), rows, whole(box), one_thread(32, 32), edge=0, signal=signal),
    )
    product = Mma(mm.atom, mm.tiling(32), whole(acc), whole(a), whole(box), eq(0, 0))
    wait = Wait("wgmma", 0)
    last = (fill, wait) if early else (wait, fill)
    math = (Alloc(a), Alloc(acc), fill, Await(signal, const(0)), Fence("wgmma"), product, *last)
    setup = (Alloc(box), Alloc(full, 1), Fence("barrier_init"), Sync())
    roles = Roles((role("load", 0, 4, 1, *load), role("math", 4, 4, 128, *math)))
    thread = Symbol("thread", "thread", 0)
    whole_kernel = Kernel("k", sm_90a, (source, target), (M, N), 256, (), (), thread, setup, roles)
    for schedule in SCHEDULES:
        found = run(whole_kernel, SIZES, schedule=schedule, values=False).violations
        messages = [(violation.code, violation.message) for violation in found]
        wanted = [("I11", "`a` is written while an operation on it is in flight")]
        assert messages == (wanted if early else [])


def test_the_block_thread_number_is_rejected_in_a_role() -> None:
    thread = Symbol("thread", "thread", 0)
    body = If(eq(sym(thread), 0), ())
    with pytest.raises(ArgusError) as caught:
        run(kernel((), (role("one", 0, 4, 128, body),)), SIZES, values=False)
    assert caught.value.diagnostic.code == "E501"
