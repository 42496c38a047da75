"""Kernels whose tiles are distributed in a zigzag, in the order of a plain enumeration; and the lemmas for either.

Blocks are proved tile by tile, for any sequence of tiles, so which block takes a tile does not matter, as long as the
blocks together take each tile once: the lemmas of `enumeration_lemmas`, of the rounds as they are. Trip counts and tile
numbers of a zigzag are as large as those of the plain enumeration, so they fit 32 bits where those do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from attrs import evolve

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import Bin, Cond, Const, Index, Symbol
from argus.core.ir import For, Kernel, Role, walk
from argus.core.ir.rewrite import NodeMap, rewrite_stmt
from argus.core.proof.sync.roles.context import fresh_block_symbol, refuse
from argus.core.proof.sync.roles.events import tile_loop_of
from argus.core.tile_rounds import TileRounds
from argus.core.walk import symbols, within

Lemma = tuple[str, Cond, tuple[Cond, ...]]
"""A statement, its goal, and the hypotheses."""


def in_plain_rounds(kernel: Kernel) -> Kernel | None:
    """The kernel with a grid coordinate for a block's place in each round of a zigzag; None if no role distributes so.

    Raises RefusedError if only some roles do, since their tiles would differ, or if anything else depends on the block:
    its place may be that of another block.
    """
    assert kernel.roles is not None
    loops = [loop for role in kernel.roles.roles if (loop := tile_loop_of(role)) is not None]
    found = {loop: _zigzag(loop, kernel) for loop in loops}
    blocks = {each[1] for each in found.values() if each is not None}
    if not blocks:
        return None
    for loop, each in found.items():
        if each is None or len(blocks) > 1:
            refuse(loop, "a role that takes its tiles in other rounds than another one")
    (block,) = blocks
    place = fresh_block_symbol(kernel, "place", block.high)
    roles = tuple(_role_in_plain_rounds(role, found, place) for role in kernel.roles.roles)
    coordinates = tuple(place if each == block else each for each in kernel.blocks)
    made = evolve(kernel, roles=evolve(kernel.roles, roles=roles), blocks=coordinates)
    for stmt in walk(made.body):
        if any(block in symbols(root) for root in expressions(stmt)):
            refuse(stmt, "a tile's coordinates depend on the block other than by the tile's number")
    return made


def _role_in_plain_rounds(role: Role, found: Mapping[For, _Zigzag | None], place: Symbol) -> Role:
    loop = tile_loop_of(role)
    of = None if loop is None else found[loop]
    if loop is None or of is None:
        return role
    rounds, block, total = of
    names = NodeMap({rounds.place(algebra.sym(block), algebra.sym(loop.symbol)): algebra.sym(place)})
    body = tuple(rewrite_stmt(stmt, names) for stmt in loop.body)
    plain = evolve(loop, stop=TileRounds(rounds.blocks).count(algebra.sym(place), total), body=body)
    return evolve(role, body=tuple(plain if stmt is loop else stmt for stmt in role.body))


_Zigzag = tuple[TileRounds, Symbol, Index]
"""The rounds, the block, and the number of all tiles."""


def _zigzag(loop: For, kernel: Kernel) -> _Zigzag | None:
    """The zigzag whose trip count is that of the loop."""
    stop = loop.stop
    if not isinstance(stop, Bin) or stop.op != "//" or not isinstance(stop.right, Const):
        return None
    rounds = TileRounds(stop.right.value, zigzag=True)
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        for last in (each for each in within(stop.left) if isinstance(each, Bin) and each.op == "max"):
            total = algebra.sub(algebra.add(stop.left, last), rounds.blocks - 1)
            known = count is stop.right and block not in symbols(total)
            if known and rounds.count(algebra.sym(block), total) is stop:
                return rounds, block, total
    return None


def enumeration_lemmas(rounds: TileRounds) -> Iterator[Lemma]:
    """The lemmas that tile numbers correspond one to one to (block, round), for any number of tiles.

    In a zigzag, each is stated of even and of odd rounds apart, in which a place is linear in the block.
    """
    own, ahead = (_round_numbers(rounds, Symbol(name, "fresh", low, None)) for name, low in (("i", 0), ("n", None)))
    names = ("b", "b'", "rest", "place")
    b, c, rest, place = (algebra.sym(Symbol(name, "fresh", 0, rounds.blocks - 1)) for name in names)

    def taken(block: Index, i: Index, total: Index) -> tuple[Cond, ...]:
        return algebra.le(0, i), rounds.takes(block, i, total)

    for i, n in product(own, ahead):
        later = algebra.add(i, n)  # or earlier
        total = algebra.add(algebra.mul(later, rounds.blocks), rest)
        within_total = algebra.lt(rounds.number(b, i), total)
        yield "each tile of a block is one of all tiles", within_total, taken(b, i, total)
        tile = algebra.add(algebra.mul(i, rounds.blocks), place)
        block, taken_in = rounds.owner(tile)
        taker = (algebra.le(0, block), algebra.lt(block, rounds.blocks), *taken(block, taken_in, total))
        same = algebra.eq(rounds.number(block, taken_in), tile)
        yield "every tile is taken by some block", algebra.all_of((*taker, same)), (algebra.lt(tile, total),)
        equal = algebra.eq(rounds.number(b, i), rounds.number(c, later))
        both = algebra.all_of((algebra.eq(b, c), algebra.eq(n, 0)))
        yield "no tile is taken by two blocks, or twice by one block", both, (equal,)


def _round_numbers(rounds: TileRounds, name: Symbol) -> tuple[Index, ...]:
    """Any number of a round; of a zigzag, any even one and any odd one."""
    number = algebra.sym(name)
    twice = algebra.mul(number, 2)
    return (twice, algebra.add(twice, 1)) if rounds.zigzag else (number,)
