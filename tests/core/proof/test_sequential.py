"""Sequential kernels of kernels with roles, and tile numbers in place of blocks."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, const, sym
from argus.core.index import Bin, Const, Index
from argus.core.ir import Assert, Copy, For, If, Kernel, Map, Role, Sync, walk
from argus.core.ir.pretty import pretty
from argus.core.ir.rewrite import NodeMap, rewrite_stmt
from argus.core.proof.sync.roles.rounds import enumeration_lemmas
from argus.core.proof.sync.roles.sequential import TileEnumeration, tile_enumeration
from argus.core.query import Sat, Unsat
from argus.core.tile_rounds import TileRounds
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


@pytest.mark.share(4)
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
    assert [block.name for block in shared.blocks] == ["tile_quotient", "tile_remainder", "wg"]
    apart = read(ROLES["pingpong"]).kernel
    assert [block.name for block in apart.blocks] == ["tile_quotient", "tile_remainder"]
    inside = read(ROLES["store_under_the_next_tile"]).kernel
    assert [block.name for block in inside.blocks] == ["block_0", "tile_quotient", "tile_remainder"]
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
    of_one = "a barrier that is not for exactly the agent's threads"
    of_several = "a barrier of several agents that is not for all threads of the role"
    for fields, wanted in (({"threads": 256}, of_one), ({"barrier": "load"}, of_several), ({"how": "arrive"}, of_one)):
        reason, stmt = refusal(changed(kernel, meeting, **fields))
        assert reason == wanted
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


both = pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=["z3", "cvc5"])


@both
@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 132])
def test_tile_numbers_stand_for_blocks_one_to_one(solver: Solver, blocks: int, *, zigzag: bool) -> None:
    facts = tuple(enumeration_lemmas(TileRounds(blocks, zigzag)))
    assert len({what for what, _, _ in facts}) == 3
    for what, goal, hypotheses in facts:
        assert isinstance(Session(solver).prove(hypotheses, goal), Unsat), what


class OneMore(TileRounds):
    """Rounds of one block more than they step by: the last takes the first block's next tile, or one too far."""

    def number(self, block: Index, i: Index) -> Index:
        return add(super().place(block, i), algebra.mul(i, self.blocks - 1))


class Forwards(TileRounds):
    """A zigzag whose blocks count their tiles as if each round began with the first block."""

    def remaining(self, block: Index, total: Index) -> Index:
        return TileRounds(self.blocks).remaining(block, total)


@both
@pytest.mark.parametrize("rounds", [OneMore(133), OneMore(133, zigzag=True), Forwards(132, zigzag=True)], ids=str)
def test_other_rounds_do_not_enumerate_the_tiles(solver: Solver, rounds: TileRounds) -> None:
    facts = enumeration_lemmas(rounds)
    wrong = {what for what, goal, given in facts if isinstance(Session(solver).prove(given, goal), Sat)}
    expected = "every tile is taken by some block" if isinstance(rounds, Forwards) else "no tile is taken by two blocks"
    assert any(what.startswith(expected) for what in wrong)


def test_a_zigzag_is_read_as_a_plain_enumeration() -> None:
    kernel = ROLES["cooperative"]
    assert pretty(read(in_zigzag(kernel, "load", "math")).kernel) == pretty(read(kernel).kernel)


def test_roles_in_different_rounds_are_refused() -> None:
    for name in ("load", "math"):
        reason, stmt = refusal(in_zigzag(ROLES["cooperative"], name))
        assert reason == "a role that takes its tiles in other rounds than another one"
        assert isinstance(stmt, For)


def test_tiles_of_a_zigzag_that_depend_on_the_block_otherwise_are_refused() -> None:
    """Of another role's tiles as well: counted in a zigzag, but numbered from the first block in each round."""
    for numbered in ((), ("load",), ("math",)):
        reason, _ = refusal(in_zigzag(ROLES["cooperative"], "load", "math", numbered=numbered))
        assert reason == "a tile's coordinates depend on the block other than by the tile's number"


def in_zigzag(kernel: Kernel, *names: str, numbered: tuple[str, ...] | None = None) -> Kernel:
    """The kernel with the tiles of these roles distributed in a zigzag. numbered: those whose tiles follow, or all."""
    assert kernel.roles is not None
    found, (block,) = tiles_of(kernel), kernel.blocks
    assert found is not None
    rounds = TileRounds(found.blocks, zigzag=True)

    def moved(role: Role) -> Role:
        (tiles,) = (stmt for stmt in role.body if isinstance(stmt, For))
        moves = numbered is None or role.name in numbered
        names = NodeMap({sym(block): rounds.place(sym(block), sym(tiles.symbol))} if moves else {})
        body = tuple(rewrite_stmt(stmt, names) for stmt in tiles.body)
        made = evolve(tiles, stop=rounds.count(sym(block), found.total), body=body)
        return evolve(role, body=tuple(made if stmt is tiles else stmt for stmt in role.body))

    roles = tuple(moved(role) if role.name in names else role for role in kernel.roles.roles)
    return evolve(kernel, roles=evolve(kernel.roles, roles=roles))


@pytest.mark.parametrize("zigzag", [False, True])
def test_rounds_by_counting(*, zigzag: bool) -> None:
    rounds = TileRounds(3, zigzag)
    for total in range(14):
        taken: list[int] = []
        for block in range(3):
            count = value(rounds.count(const(block), const(total)))
            taken += [value(rounds.number(const(block), const(turn))) for turn in range(count)]
        assert sorted(taken) == list(range(total))
        for number in range(total):
            block, turn = rounds.owner(const(number))
            assert value(rounds.number(block, turn)) == number


def value(of: Index) -> int:
    assert isinstance(of, Const)
    return of.value


def test_branches_of_a_sequential_kernel_are_preserved() -> None:
    kernel = ROLES["two_consumers"]
    line = read(kernel).kernel
    assert len([stmt for stmt in walk(line.body) if isinstance(stmt, If)]) == 1
