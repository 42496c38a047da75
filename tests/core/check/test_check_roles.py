"""Well-formedness errors of roles, barriers and warpgroup products, on hand-built kernels."""

from __future__ import annotations

from attrs import evolve

from argus.core.algebra import TRUE, add, const, coord, mul, sym
from argus.core.atoms.sm_90a import reductions, tma, warp, wgmma
from argus.core.check import check
from argus.core.dtype import bf16, f32, i32
from argus.core.index import Index, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Await,
    Buffer,
    Commit,
    Copy,
    Fence,
    For,
    Get,
    Kernel,
    Let,
    Map,
    Mma,
    One,
    Peek,
    Role,
    Roles,
    Staged,
    Stmt,
    Strided,
    Sync,
    View,
    Wait,
    whole,
)
from argus.core.layout import TV, Layout, Swizzle, row_major
from argus.core.memory.swizzle_tiles import swizzle_tiled
from argus.core.target import sm_90a
from argus.core.tiling import WarpgroupMma, subtile

ATOM = wgmma.find(bf16, 64, "shared")
assert ATOM is not None
MM = WarpgroupMma(ATOM, "k", 16)
NUMBER, THREAD = Symbol("wg", "agent", 0, 1), Symbol("math_thread", "thread", 0, 127)
BLOCK, BLOCK_THREAD, K = Symbol("block_0", "block", 0, 0), Symbol("thread", "thread", 0, 383), Symbol("k", "loop", 0, 9)
SHAPE = (const(64), const(64))


SPAN_128 = Swizzle(3, 3, 3)


def in_shared(name: str = "tile", swizzle: Swizzle | None = SPAN_128, columns: int = 64) -> Buffer:
    shape = (const(64), const(columns))
    return Buffer(name, "shared", bf16, shape, Staged(row_major((64, columns)), swizzle), align=1024)


TILE = in_shared()
TENSOR = Buffer("A", "global", bf16, SHAPE, Strided((const(64), const(1))))
ACC = Buffer("acc", "register", f32, SHAPE, MM.C, owner="math")
PART = Buffer("part", "register", f32, (const(64), const(16)), subtile(MM.C, (64, 16)), owner="math")
FULL = Buffer("full", "barrier", i32, (const(2),), Staged(row_major((2,))))
COUNT = Buffer("count", "counter", i32, (), Staged(Layout(1, 0)), owner="math")
FIRST = View(FULL, (), (const(0),))
ALONE = TV(Layout(1, 0), Layout(4096, 1), (64, 64))
READY = (Alloc(FULL, count=1), Fence("barrier_init"), Sync())
LOAD = Copy(tma.tma_load[3], whole(TENSOR), whole(TILE), ALONE, 0.0, FIRST)
STORE = Copy(tma.tma_store[3], whole(TILE), whole(TENSOR), ALONE, 0.0)
PRODUCT = Mma(MM.atom, MM.tiling(64), whole(ACC), whole(TILE), whole(TILE), TRUE)


def role(*body: Stmt, name: str = "math", first: int = 4, warps: int = 8, agent: int = 128) -> Role:
    return Role(name, first, warps, agent, None, body, NUMBER, THREAD)


def kernel_of(*roles: Role, before: tuple[Stmt, ...] = (), after: tuple[Stmt, ...] = ()) -> Kernel:
    return Kernel(
        "probe",
        sm_90a,
        (TENSOR,),
        (),
        384,
        (const(1),),
        (BLOCK,),
        BLOCK_THREAD,
        (Alloc(TILE), *before),
        Roles(roles) if roles else None,
        after,
    )


def codes(*body: Stmt, before: tuple[Stmt, ...] = READY) -> list[str]:
    """The faults of a role of two warpgroups with its registers and counter."""
    made = kernel_of(role(Alloc(ACC), Alloc(PART), Alloc(COUNT), *body), before=before)
    return [found.code for found in check(made)]


def shared_view(start: Index, buffer: Buffer = TILE) -> View:
    return View(buffer, SHAPE, (add(coord(0), start), coord(1)))


def test_a_well_formed_role_has_no_error() -> None:
    n = Symbol("n", "fresh", 0, None)
    assert (
        codes(
            Let(n, Peek(View(COUNT, (), ()))),
            Await(View(FULL, (), (sym(NUMBER),)), sym(n)),
            PRODUCT,
            Wait("wgmma", 0),
            One((Arrive(FIRST, 1, const(0)), STORE)),
            Wait("bulk", 0),
            Advance(COUNT, const(1)),
        )
        == []
    )


def test_roles_have_disjoint_warps() -> None:
    assert [found.code for found in check(kernel_of(role(), role(name="other", first=8, warps=4)))] == ["E202"]
    assert [found.code for found in check(kernel_of(role(first=8)))] == ["E202"]
    assert [found.code for found in check(kernel_of(role(agent=96)))] == ["E202"]
    assert [found.code for found in check(kernel_of(evolve(role(), registers=20)))] == ["E202"]
    product = role(Alloc(ACC), PRODUCT, first=2, warps=4)
    assert "E202" in [found.code for found in check(kernel_of(product))]
    assert [found.code for found in check(kernel_of(after=(Roles((role(),)),)))] == ["E202"]


def test_registers_and_counters_have_an_owner() -> None:
    stray = evolve(ACC, owner="other")
    assert codes(Alloc(stray), Map(whole(stray), Get(whole(ACC), (coord(0), coord(1))))) == ["E216"]
    counter = evolve(COUNT, owner="")
    assert codes(Alloc(counter), Advance(counter, const(1))) == ["E216"]


def test_registers_are_indexed_by_constants() -> None:
    chosen = View(ACC, PART.shape, (coord(0), add(coord(1), mul(sym(K), 16))))
    body = Map(whole(PART), Get(chosen, (coord(0), coord(1))))
    assert codes(For(K, const(0), const(4), 1, (body,))) == ["E205", "E217"]


def test_elements_of_a_subtile_are_held_by_the_same_thread() -> None:
    def cut(columns: int, rows: int = 0) -> list[str]:
        chosen = View(ACC, PART.shape, (add(coord(0), rows), add(coord(1), columns)))
        return codes(Map(whole(PART), Get(chosen, (coord(0), coord(1)))))

    assert cut(0) == []
    assert cut(48) == []
    assert cut(4) == ["E205"]
    assert cut(56) == ["E205"]
    assert cut(0, rows=8) == ["E205"]


def test_an_elected_thread_runs_single_thread_statements_only() -> None:
    fine = (Arrive(FIRST, 1, const(0)), Await(FIRST, const(0)), STORE, LOAD, Wait("bulk", 0), Fence("async_proxy"))
    assert codes(One(fine)) == []
    load = Copy(warp.ldmatrix_x4, whole(TILE), whole(ACC), MM.C)
    for stmt in (Sync("math", "meet", 128), Advance(COUNT, const(1)), Fence("wgmma"), load):
        assert "E214" in codes(One((stmt,)))
    assert codes(One((PRODUCT,))) == ["E213", "E214"]


def test_a_single_thread_instruction_is_run_by_one_thread() -> None:
    assert codes(STORE) == ["E215"]
    alone = role(STORE, name="load", first=0, warps=4, agent=1)
    assert check(kernel_of(alone)) == ()


def test_a_copy_with_a_wrong_thread_count() -> None:
    half = TV(Layout(64, 1), Layout(64, 64), (64, 64))
    move = Copy(warp.cp_async[2], whole(TENSOR), whole(TILE), half)
    assert codes(move) == ["E213"]


def test_barriers_are_ready_before_they_are_used() -> None:
    use = Await(FIRST, const(0))
    assert codes(use) == []
    assert codes(use, before=(Alloc(FULL, count=1), Sync())) == ["E208"]
    assert codes(use, before=(Alloc(FULL, count=1), Fence("barrier_init"))) == ["E208"]
    assert codes(use, before=(Fence("barrier_init"), Alloc(FULL, count=1), Sync())) == ["E208"]
    assert codes(before=(Alloc(FULL), Fence("barrier_init"), Sync())) == ["E208"]
    assert codes(before=(Alloc(FULL, count=0), Fence("barrier_init"), Sync())) == ["E208"]
    other = Buffer("late", "barrier", i32, (const(1),), Staged(row_major((1,))))
    assert codes(Alloc(other, count=1)) == ["E208"]
    assert codes(Await(View(TILE, (), (const(0), const(0))), const(0))) == ["E208"]


def test_a_copy_completes_as_its_instruction_does() -> None:
    assert codes(One((evolve(LOAD, signal=None),))) == ["E208"]
    assert codes(One((evolve(STORE, signal=FIRST),))) == ["E208"]


def test_operands_that_must_be_uniform() -> None:
    thread = sym(THREAD)
    assert codes(Await(View(FULL, (), (thread,)), const(0))) == ["E207"]
    assert codes(Await(FIRST, thread)) == ["E207"]
    assert codes(Arrive(FIRST, 1, thread)) == ["E207"]
    assert codes(Advance(COUNT, thread)) == ["E207"]
    assert codes(Await(FIRST, sym(NUMBER))) == []


def test_symbols_of_a_role_are_in_scope_in_it_only() -> None:
    made = kernel_of(role(), before=READY, after=(Await(FIRST, sym(NUMBER)),))
    (found,) = check(made)
    assert (found.code, found.message) == ("E201", "`wg` is used outside its role")


def test_waits_are_for_what_is_issued() -> None:
    assert codes(Wait("wgmma", 0)) == ["E219"]
    assert codes(Wait("bulk", 0), One((LOAD,))) == ["E219"]
    other = role(Wait("wgmma", 0), name="load", first=0, warps=4)
    made = kernel_of(role(Alloc(ACC), PRODUCT, Wait("wgmma", 0)), other)
    assert [found.code for found in check(made)] == ["E219"]


def test_groups_of_products_are_closed() -> None:
    grouped = evolve(PRODUCT, grouped=True)
    assert codes(grouped) == ["E219"]
    assert codes(For(K, const(0), const(4), 1, (grouped,))) == ["E219"]
    assert codes(Commit("wgmma"), grouped) == ["E219"]
    assert codes(grouped, PRODUCT, Commit("wgmma")) == []
    assert codes(For(K, const(0), const(4), 1, (grouped,)), Commit("wgmma")) == []


def test_a_copy_adds_by_an_instruction_that_adds() -> None:
    part = View(TENSOR, SHAPE, (coord(0), coord(1)))
    store = Copy(warp.st_global[1], whole(ACC), part, MM.C)
    assert codes(Alloc(ACC), evolve(store, combine="add")) == ["E108"]
    assert codes(Alloc(ACC), evolve(store, atom=reductions.red_global_add[0])) == ["E108"]
    assert codes(Alloc(ACC), evolve(store, atom=reductions.red_global_add[0], combine="add")) == []


def test_a_wide_factor_begins_at_a_swizzle_tile() -> None:
    wide = Buffer(
        "wide", "shared", bf16, (const(64), const(128)), Staged(swizzle_tiled((64, 128), 64), SPAN_128), align=1024
    )

    def product(start: int) -> Mma:
        view = View(wide, SHAPE, (coord(0), add(coord(1), start)))
        return evolve(PRODUCT, a=view, b=view)

    def faults(start: int) -> list[str]:
        body = (role(Alloc(ACC), product(start)),)
        return [found.code for found in check(kernel_of(*body, before=(Alloc(wide), *READY)))]

    assert faults(0) == faults(64) == []
    assert faults(16) == ["E218", "E218"]


def test_a_shared_factor_has_a_layout_that_a_descriptor_expresses() -> None:
    def product(a: View) -> list[str]:
        return codes(Alloc(a.buffer), evolve(PRODUCT, a=a))

    assert product(shared_view(const(0))) == []
    assert product(shared_view(mul(sym(NUMBER), 64))) == []
    assert product(shared_view(const(8))) == []
    assert product(shared_view(const(4))) == ["E218"]
    assert product(shared_view(mul(sym(NUMBER), 4))) == ["E218"]
    assert product(whole(in_shared("linear", None))) == ["E218"]
    assert product(whole(in_shared("narrow", Swizzle(2, 3, 3)))) == ["E218"]
    assert product(whole(in_shared("chunks", Swizzle(3, 2, 3)))) == ["E218"]
    assert product(whole(in_shared("wide", columns=128))) == ["E206"]
    transposed = View(TILE, SHAPE, (coord(1), coord(0)))
    assert product(transposed) == []
    assert product(View(TILE, SHAPE, (coord(0), add(coord(1), coord(0))))) == ["E218"]


def test_operands_have_the_extents_and_registers_of_the_product() -> None:
    assert codes(evolve(PRODUCT, tiling=MM.tiling(32))) == ["E206", "E206"]
    assert codes(evolve(PRODUCT, target=whole(PART))) == ["E206"]
    assert codes(evolve(PRODUCT, target=whole(TILE))) == ["E206"]
