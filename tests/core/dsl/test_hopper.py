"""Roles, rings, `Turns` and persistent loops: their expansion into statements, and errors."""

# ruff: noqa: ARG001
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import cast

import pytest

from argus.core.algebra import const
from argus.core.check import check
from argus.core.diagnostic import ArgusError
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Await,
    Copy,
    Fence,
    For,
    Kernel,
    Let,
    Mma,
    One,
    Policy,
    Role,
    Sync,
    Wait,
    walk,
)
from argus.core.ir.pretty import pretty
from argus.core.walk import evaluate, symbols
from argus.kernels.gemm import gemm
from argus.language import (
    Barrier,
    Int,
    Tensor,
    Turns,
    arrive,
    assume,
    barrier,
    bf16,
    bulk,
    bulk_copy,
    by_columns,
    by_rows,
    ceil_div,
    copy,
    cp_async,
    elected,
    eq,
    f32,
    fence,
    gfx942,
    kernel,
    ldmatrix,
    load,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    stmatrix,
    super_tiled,
    sync,
    tma,
    warp,
    warpgroup,
    warpgroups,
    warps,
    wgmma,
    when,
    zeros,
)
from tests.conftest import Golden
from tests.core.dsl.hopper_tracing import fill_once, refused, small_ring, traced


def role_of(made: Kernel, name: str) -> Role:
    assert made.roles is not None
    return next(role for role in made.roles.roles if role.name == name)


def arrivals(made: Kernel) -> dict[str, int | None]:
    """From each barrier to its arrivals per phase."""
    allocs = [stmt for stmt in made.prologue if isinstance(stmt, Alloc) and stmt.buffer.space == "barrier"]
    return {stmt.buffer.name: stmt.count for stmt in allocs}


def announced(made: Kernel) -> list[int]:
    found = [stmt.bytes for stmt in walk(role_of(made, "load").body) if isinstance(stmt, Arrive)]
    return [cast(int, evaluate(size, {})) for size in found]


# -- the listings --------------------------------------------------------------------------------------------


@pytest.mark.share(20)
@pytest.mark.parametrize("config", gemm.instances())
def test_the_listings_are_well_formed_and_print(config: str, golden: Golden) -> None:
    made = gemm.trace(config)
    assert check(made) == ()
    golden(pretty(made))


def test_the_empty_barrier_counts_the_agents_that_consume_a_use() -> None:
    """Two if both warpgroups consume each slot, one if they alternate and skip."""
    assert arrivals(gemm.trace("cooperative")) == {"ring_full": 1, "ring_empty": 2}
    assert arrivals(gemm.trace("pingpong")) == {"ring_full": 1, "ring_empty": 1, "turns": 1}


def test_expected_bytes_are_those_of_the_copies() -> None:
    assert announced(gemm.trace("cooperative")) == [(128 + 256) * 64 * 2]
    assert announced(gemm.trace("small")) == [(128 + 128) * 64 * 2]


def test_registers_and_counters_belong_to_their_role() -> None:
    made = gemm.trace("cooperative")
    math, loads = role_of(made, "math"), role_of(made, "load")
    assert (math.first_warp, math.warps, math.agent, math.agents, math.number.name) == (4, 8, 128, 2, "wg")
    assert (loads.first_warp, loads.warps, loads.agent, loads.agents) == (0, 4, 1, 1)
    assert [role.body[0].args for role in (loads, math) if isinstance(role.body[0], Policy)] == [(40,), (232,)]
    owners = {stmt.buffer.owner for stmt in walk(math.body) if isinstance(stmt, Alloc)}
    assert owners == {"math"}


def test_the_prologue_ends_with_barrier_initialisation_made_visible() -> None:
    made = gemm.trace("pingpong")
    assert isinstance(made.prologue[-2], Fence)
    assert made.prologue[-2].kind == "barrier_init"
    assert isinstance(made.prologue[-1], Sync)


def test_expanded_statements_have_an_origin() -> None:
    made = gemm.trace("pingpong")
    origins = {stmt.origin.construct for stmt in walk(made.body) if stmt.origin is not None}
    assert origins == {"ring ring", "turns turns", "wgmma", "barriers"}


# -- rings ---------------------------------------------------------------------------------------------------


def test_a_barrier_precedes_a_release_after_ordinary_loads() -> None:
    def kinds(generic: bool) -> list[str]:
        def body(A: Tensor, C: Tensor) -> None:
            ring = small_ring()
            fill_once(ring, A)
            mm = wgmma(bf16, n=64)
            with role("math", warpgroup(1)):
                acc = registers(f32, mm.C)
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.a, init=True)
                if generic:
                    load(slot.a, spread((64, 64), threads=128, vector=8))
                wgmma.wait(0)
                ring.release()

        return [type(stmt).__name__ for stmt in role_of(traced(body), "math").body]

    assert kinds(generic=True)[-4:] == ["Sync", "Let", "One", "Advance"]
    assert "Sync" not in kinds(generic=False)


def test_finish_waits_for_each_slot_in_turn() -> None:
    made = gemm.trace("small")
    waits = [stmt for stmt in role_of(made, "load").body if isinstance(stmt, Await)]
    assert len(waits) == 2
    (use,) = (stmt.symbol for stmt in role_of(made, "load").body if isinstance(stmt, Let))
    found = [(evaluate(wait.event.at[0], {use: 5}), evaluate(wait.phase, {use: 5})) for wait in waits]
    assert found == [(1, 1), (0, 2)]


def test_turns_begin_with_agent_0() -> None:
    """Agent 0's first use waits for a phase that a fresh barrier has complete, agent 1's for agent 0's arrival."""
    body = role_of(gemm.trace("pingpong"), "math")
    (wait,) = (stmt for stmt in walk(body.body) if isinstance(stmt, Await) and stmt.event.buffer.name == "turns")
    named = {symbol.name: symbol for symbol in symbols(wait.phase)}
    phases = [evaluate(wait.phase, {named["turns_use"]: use, named["wg"]: agent}) for agent in (0, 1) for use in (0, 1)]
    assert phases == [-1, 0, 0, 1]


# -- fences and queues ---------------------------------------------------------------------------------------


def fences(made: Kernel) -> int:
    return sum(isinstance(stmt, Fence) and stmt.kind == "wgmma" for stmt in walk(made.body))


def test_wgmma_fences_follow_ordinary_register_accesses() -> None:
    def product(touch: str) -> Kernel:
        def body(A: Tensor, C: Tensor) -> None:
            tile = shared(bf16, (64, 64), swizzle=128)
            mm = wgmma(bf16, n=64)
            acc, other = registers(f32, mm.C), zeros(f32, mm.C)
            mma(mm, acc, tile, tile, init=True)
            if touch == "sum":
                acc *= 2.0
            if touch == "other":
                other *= 2.0
            for _ in loop(3):
                mma(mm, acc, tile, tile)
                if touch == "end":
                    wgmma.wait(0)
                    acc *= 2.0
            wgmma.wait(0)

        return traced(body, 128)

    assert fences(product("")) == 1
    assert fences(product("other")) == 1
    assert fences(product("sum")) == 2
    assert fences(product("end")) == 2


def test_wgmma_fences_for_a_in_registers() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = shared(bf16, (64, 64), swizzle=128)
        mm = wgmma(bf16, n=64, a="registers", k=64)
        acc, p = registers(f32, mm.C), registers(bf16, mm.A)
        for _ in loop(2):
            mma(mm, acc, p, tile)
        p[:] = zeros(bf16, mm.A)
        mma(mm, acc, p, tile)
        wgmma.wait(0)

    made = traced(body, 128)
    assert fences(made) == 2
    product = next(stmt for stmt in walk(made.body) if isinstance(stmt, Mma))
    assert product.tiling.repeat == (1, 1, 4)


def test_queues_of_groups() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = shared(bf16, (64, 64), swizzle=128)
        copy(A.tile((64, 64), (0, 0)), tile, via=cp_async, by=spread((64, 64), threads=128, vector=8), edge=0)
        cp_async.commit()
        cp_async.wait(0)
        sync()
        with elected():
            copy(tile, C.tile((64, 64), (0, 0)), via=tma, edge=0)
            bulk.commit()
            bulk.wait(0, of="reads")

    made = traced(body, 128)
    copies = [stmt.atom.name for stmt in walk(made.body) if isinstance(stmt, Copy)]
    assert copies == ["cp_async_16", "tma_store_2d_sw128"]
    assert [(s.queue, s.of) for s in walk(made.body) if isinstance(s, Wait)] == [("cp_async", "all"), ("bulk", "reads")]


def test_ordinary_copies_are_the_targets_own() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        by = spread((64, 64), threads=128, vector=8)
        tile = shared(bf16, (64, 64))
        x = load(A.tile((64, 64), (0, 0)), by, edge=0)
        copy(x, tile)
        copy(load(tile, by), C.tile((64, 64), (0, 0)), edge=0)

    names = [stmt.atom.name for stmt in traced(body, 128).prologue if isinstance(stmt, Copy)]
    assert names == ["ld_global_b128", "st_shared_b128", "ld_shared_b128", "st_global_b128"]


def test_matrices_of_fragments() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = shared(bf16, (64, 64), swizzle=128)
        mm = wgmma(bf16, n=64, a="registers", k=64)
        a = registers(bf16, mm.A)
        copy(tile, a, via=ldmatrix.x4)
        copy(a, tile, via=stmatrix.x4)
        copy(tile.T, a, via=ldmatrix.x4_trans)

    names = [stmt.atom.name for stmt in traced(body, 128).prologue if isinstance(stmt, Copy)]
    assert names == ["ldmatrix_x4", "stmatrix_x4", "ldmatrix_x4_trans"]


@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_of_other_fragments_are_refused(transposed: bool) -> None:
    def body(A: Tensor, C: Tensor) -> None:
        tile = shared(bf16, (64, 64), swizzle=128)
        if transposed:
            mm = wgmma(bf16, n=64, a="registers", k=64)
            copy(tile.T, registers(bf16, mm.A), via=ldmatrix.x4)
        else:
            copy(tile, registers(bf16, spread((64, 64), threads=128, vector=8)), via=ldmatrix.x4)

    assert refused(body, 128).code == "E108"


def test_a_bulk_copy_and_a_barrier_by_hand() -> None:
    def probe(X: Tensor["N", f32]) -> None:  # noqa: UP037 reason: the name of a size
        tile, done = shared(f32, (256,)), barrier(1, of=2)
        assert isinstance(done[1], Barrier)
        with elected():
            done[1].arrive(bytes=1024)
            copy(X.tile((256,), (0,)), tile, via=bulk_copy, signal=done[1])
        done[1].wait(0)

    made = kernel(target=sm_90a, threads=128)(probe).trace()
    assert [type(stmt).__name__ for stmt in made.prologue[1:4]] == ["Alloc", "Fence", "Sync"]
    assert any(isinstance(stmt, Copy) and stmt.atom.name == "bulk_load_1d" for stmt in walk(made.body))


def test_sync_in_a_role_counts_the_threads_of_its_agent() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        with role("one", warp(0)):
            sync()
            arrive("pair", threads=64)
        with role("two", warps(1, 2)):
            sync()
        with role("three", warp(3)):
            sync("pair", threads=64)

    made = traced(body, 128)
    found = [(stmt.barrier, stmt.how, stmt.threads) for stmt in walk(made.body) if isinstance(stmt, Sync)]
    assert found == [("one", "meet", 32), ("pair", "arrive", 64), ("two", "meet", 32), ("pair", "meet", 64)]
    assert role_of(made, "two").agents == 2


# -- persistent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (8, 4), (9, 7), (3, 11)])
@pytest.mark.parametrize("order", [by_rows, by_columns, super_tiled(4), super_tiled(1)])
def test_a_tile_order_visits_each_tile_once(order: Callable[..., tuple[Int, ...]], m: int, n: int) -> None:
    def body(A: Tensor, C: Tensor) -> None:
        counts = (Int(const(m)), Int(const(n)))
        taken.extend(tuple(int(at) for at in order(Int(const(number)), counts)) for number in range(m * n))

    taken: list[tuple[int, ...]] = []
    traced(body)
    assert sorted(taken) == sorted(product(range(m), range(n)))


@pytest.mark.parametrize("total", [0, 1, 6, 7, 8, 40])
def test_tiles_are_partitioned_among_blocks(total: int) -> None:
    """Every second tile of a block by each of two agents; together all blocks take each tile once."""
    made = gemm.trace("pingpong")
    (sweep,) = (stmt for stmt in role_of(made, "math").body if isinstance(stmt, For))
    names = {symbol.name: symbol for symbol in (*made.sizes, *made.blocks, role_of(made, "math").number)}
    taken: list[int] = []
    for block in range(132):
        for agent in (0, 1):
            env = {names["M"]: 64 * total, names["N"]: 256, names["block_0"]: block, names["wg"]: agent}
            own = range(cast(int, evaluate(sweep.start, env)), cast(int, evaluate(sweep.stop, env)), sweep.step)
            taken += [block + 132 * i for i in own]
    assert sorted(taken) == list(range(total))


def test_unsupported_constructs_are_refused() -> None:
    @kernel(target=gfx942, threads=256, cluster=(2, 1))
    def clustered(A: Tensor["M K", bf16]) -> None:
        pass

    with pytest.raises(ArgusError, match="clusters of gfx942 are not built yet") as caught:
        clustered.trace()
    assert caught.value.diagnostic.code == "E501"

    @kernel(target=gfx942, threads=256)
    def roles(A: Tensor["M K", bf16]) -> None:
        with role("math", warpgroup(0)):
            pass

    with pytest.raises(ArgusError, match="roles of gfx942 are not built yet"):
        roles.trace()


def test_a_phase_is_uniform_over_the_agent() -> None:
    """The uses of a ring may depend on the agent's number, and a guard on it is uniform."""

    def body(A: Tensor, C: Tensor) -> None:
        assume(A.shape[1] >= 1)
        depth = ceil_div(A.shape[1], 64)
        turns = Turns(2)
        with role("math", warpgroups(0, 1)) as wg:
            with turns(wg), when(eq(wg, 0)):
                fence("async proxy")
            for _ in loop(depth + wg):
                sync()

    assert check(traced(body)) == ()
    assert any(isinstance(stmt, One | Advance) for stmt in walk(traced(body).body))
