"""Loops that store: their iterations as tiles, alone or together with the blocks that take them in turn.

With G blocks, the numbers block, block + G, block + 2 G, ... below T are, over all blocks, each number of [0, T) once:
t is taken by block t % G in its trip t // G.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Symbol
from argus.core.ir import Kernel
from argus.core.proof.dataflow.timeline import Loop
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class Walk:
    """number: counts the tiles, from 0 below `count`. bases: what is stored where, in terms of it.

    block: the coordinate of the grid that is part of the number, if one is.
    """

    number: Symbol
    count: Index
    bases: tuple[Index, ...]
    block: Symbol | None = None


def walk_of(kernel: Kernel, loop: Loop, bases: Sequence[Index]) -> Walk:
    """The tiles of a loop; of all blocks together where they take turns."""
    number = Symbol(f"{loop.symbol.name}_number", "block", 0)
    for block, blocks in zip(kernel.blocks, kernel.grid, strict=True):
        if isinstance(blocks, Const):
            found = _in_turn(loop, block, blocks.value, number, bases)
            if found is not None:
                return found
    own = algebra.add(loop.stmt.start, algebra.mul(algebra.sym(number), loop.stmt.step))
    return Walk(number, loop.trips, tuple(substitute(base, {loop.symbol: own}) for base in bases))


def _in_turn(loop: Loop, block: Symbol, blocks: int, number: Symbol, bases: Sequence[Index]) -> Walk | None:
    """The walk over `block + i * blocks`, written as a loop by `blocks` or over the trip i."""
    own, stmt, tile = algebra.sym(block), loop.stmt, algebra.sym(number)
    if stmt.start is own and stmt.step == blocks:
        total, moved = stmt.stop, tuple(substitute(base, {loop.symbol: tile}) for base in bases)
    elif stmt.start is algebra.const(0) and stmt.step == 1 and isinstance(stmt.stop, Bin):
        total = algebra.add(stmt.stop.left, own, 1 - blocks)
        if algebra.ceil_div(algebra.sub(total, own), blocks) is not stmt.stop:
            return None
        first = algebra.sub(tile, algebra.mul(algebra.sym(loop.symbol), blocks))
        moved = tuple(substitute(base, {block: first}) for base in bases)
    else:
        return None
    spoken = symbols(total, *moved)
    return None if block in spoken or loop.symbol in spoken else Walk(number, total, moved, block)
