"""Sequential kernels of kernels with roles, and tile numbers in place of blocks."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, const, sym
from argus.core.index import Bin, Cond, Const, Symbol
from argus.core.ir import Assert, Copy, For, If, Kernel, Map, Sync, walk
from argus.core.ir.pretty import pretty
from argus.core.proof.sync.roles.sequential import TileEnumeration, enumeration_lemmas, tile_enumeration
from argus.core.query import Sat, Unsat
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.role_programs import ROLES
from tests.conftest import Golden
from tests.core.proof.queries import extract, read, refusal
from tests.core.proof.rings import Drained, changed, edited, of_role, ring


def test_the_line_of_a_ring_of_one_tile(golden: Golden) -> None:
    golden(pretty(read(ring(Drained(lag=1, agents=2))).kernel))


def test_the_line_of_tiles_in_turn(golden: Golden) -> None:
    golden(pretty(read(ROLES["pingpong"]).kernel))


def test_a_sequential_kernel_has_one_agent_and_no_barriers() -> None:
    for name, kernel in ROLES.items():
        line = read(kernel).kernel
        assert line.roles is None
        assert line.threads == 128
        copies = [stmt for stmt in walk(line.body) if isinstance(stmt, Copy)]
        assert all(stmt.signal is None for stmt in copies), name
        assert all(stmt.barrier == "cta" for stmt in walk(line.body) if isinstance(stmt, Sync)), name


def test_the_grid_of_a_sequential_kernel_counts_tiles_and_agents() -> None:
    shared = read(ROLES["cooperative"]).kernel
    assert [block.name for block in shared.blocks] == ["tile", "wg"]
    apart = read(ROLES["pingpong"]).kernel
    assert [block.name for block in apart.blocks] == ["tile"]
    inside = read(ROLES["store_under_the_next_tile"]).kernel
    assert [block.name for block in inside.blocks] == ["block_0", "tile"]
    assert inside.grid[0] is const(1)


# -- what a line may not speak of -----------------------------------------------------------------------------


def test_a_tile_that_depends_on_the_block_otherwise_is_refused() -> None:
    kernel = ROLES["cooperative"]
    (block,) = kernel.blocks
    store = of_role(kernel, "math", Copy)[-1]
    assert store.target.buffer.name == "C"
    at = (add(store.target.at[0], sym(block)), *store.target.at[1:])
    reason, stmt = refusal(changed(kernel, store, target=evolve(store.target, at=at)))
    assert reason == "a tile's coordinates depend on the block other than by the tile's number"
    assert stmt.span == store.span


def test_a_tile_that_depends_on_the_count_of_the_blocks_own_tiles_is_refused() -> None:
    kernel = ROLES["cooperative"]
    loop = of_role(kernel, "math", For)[0]
    store = of_role(kernel, "math", Copy)[-1]
    at = (add(store.target.at[0], sym(loop.symbol)), *store.target.at[1:])
    reason, _ = refusal(changed(kernel, store, target=evolve(store.target, at=at)))
    assert reason == "a tile's coordinates depend on the block other than by the tile's number"


def test_a_producer_with_another_tile_enumeration_is_refused() -> None:
    kernel = ROLES["cooperative"]
    (block,) = kernel.blocks
    load = of_role(kernel, "load", Copy)[0]
    at = (add(load.source.at[0], sym(block)), *load.source.at[1:])
    reason, stmt = refusal(changed(kernel, load, source=evolve(load.source, at=at)))
    assert reason == "a tile's coordinates depend on the block other than by the tile's number"
    assert stmt.span == load.span


@pytest.mark.parametrize("kind", [Map, Assert])
def test_work_outside_the_tiles_is_refused(kind: type[Map | Assert]) -> None:
    kernel = ROLES["cooperative"]
    work = of_role(kernel, "math", kind)[0]
    without = edited(kernel, work)
    tiles = of_role(without, "math", For)[0]
    for both_ways in ((work, tiles), (tiles, work)):
        reason, stmt = refusal(edited(without, tiles, *both_ways))
        assert reason == "data that is copied, computed or claimed outside the loop over tiles"
        assert stmt.span == work.span


def test_a_barrier_of_other_threads_is_refused() -> None:
    kernel = ROLES["cooperative"]
    meeting = of_role(kernel, "math", Sync)[0]
    for fields in ({"threads": 256}, {"barrier": "load"}, {"how": "arrive"}):
        reason, stmt = refusal(changed(kernel, meeting, **fields))
        assert reason == "a barrier that is not for exactly the agent's threads"
        assert stmt.span == meeting.span


# -- tiles for blocks ----------------------------------------------------------------------------------------


def tiles_of(kernel: Kernel) -> TileEnumeration | None:
    return tile_enumeration(kernel, extract(kernel).roles[1])


def test_a_block_takes_every_nth_tile() -> None:
    kernel = ROLES["cooperative"]
    found = tiles_of(kernel)
    assert found is not None
    assert found.blocks == 2
    assert found.block == kernel.blocks[0]
    (m, n) = (algebra.ceil_div(sym(kernel.sizes[0]), 128), algebra.ceil_div(sym(kernel.sizes[2]), 16))
    assert [size.name for size in kernel.sizes] == ["M", "K", "N"]
    assert found.total is algebra.mul(m, n)
    assert tiles_of(ring(Drained())) is None


def test_one_block_may_take_all_tiles() -> None:
    kernel = ROLES["store_under_the_next_tile"]
    found = tiles_of(kernel)
    assert found is not None
    assert found.block is None
    assert found.names == {found.own: sym(found.number)}


def test_another_tile_enumeration_is_refused() -> None:
    kernel = ROLES["cooperative"]
    for blocks in (1, 3):
        reason, _ = refusal(evolve(kernel, grid=(const(blocks),)))
        assert "tiles" in reason
    loop = of_role(kernel, "math", For)[0]
    assert isinstance(loop.stop, Bin)
    for stop in (add(loop.stop, 1), add(loop.stop, -1), algebra.floordiv(loop.stop.left, 3)):
        reason, stmt = refusal(changed(kernel, loop, stop=stop))
        assert reason.startswith("a loop over tiles whose trip count is not that of the tiles")
        assert stmt.span == loop.span
    assert isinstance(kernel.grid[0], Const)
    reason, _ = refusal(evolve(kernel, grid=(sym(kernel.sizes[0]),)))
    assert "a grid whose number of blocks is not constant" in reason


TILES = TileEnumeration(
    Symbol("tile", "block", 0, None), const(0), Symbol("i", "loop", 0), Symbol("b", "block", 0, 131), 132
)
both = pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=["z3", "cvc5"])


@both
@pytest.mark.parametrize("blocks", [1, 2, 132])
def test_tile_numbers_stand_for_blocks_one_to_one(solver: Solver, blocks: int) -> None:
    facts = enumeration_lemmas(evolve(TILES, blocks=blocks))
    assert len(facts) == 3
    for what, goal, hypotheses in facts:
        assert isinstance(Session(solver).prove(hypotheses, goal), Unsat), what


@both
def test_tile_numbers_do_not_stand_for_one_block_more(solver: Solver) -> None:
    """Of 133 blocks that step by 132, the last takes the second tile of the first, and with it a tile too far."""
    what, goal, hypotheses = enumeration_lemmas(TILES)[1]
    assert what == "no tile is taken by two blocks, or twice by one block"
    more = tuple(one_more(each) for each in hypotheses)
    assert more != hypotheses
    assert isinstance(Session(solver).prove(more, goal), Sat)


def one_more(hypothesis: Cond) -> Cond:
    """`block < 132` as `block < 133`."""
    for name in ("b", "b'"):
        block = sym(Symbol(name, "fresh", 0, None))
        if hypothesis is algebra.lt(block, 132):
            return algebra.lt(block, 133)
    return hypothesis


def test_branches_of_a_sequential_kernel_are_preserved() -> None:
    kernel = ROLES["two_consumers"]
    line = read(kernel).kernel
    assert len([stmt for stmt in walk(line.body) if isinstance(stmt, If)]) == 1
