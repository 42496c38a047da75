"""Numbers the tiles of a loop that stores; a grid-stride loop is numbered together with its blocks.

With G blocks, the numbers block, block + G, block + 2 G, ... below T cover, over all blocks, each number of [0, T)
exactly once: block t % G takes tile t in its iteration t // G.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Symbol
from argus.core.ir import Kernel
from argus.core.proof.dataflow.timeline import Loop
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class TileSequence:
    """Tiles numbered 0 <= number < count.

    bases: the base indices of the stores in terms of `number`, and guard: the condition of the stores. block: the grid
    coordinate that `number` replaces.
    """

    number: Symbol
    count: Index
    bases: tuple[Index, ...]
    guard: Cond
    block: Symbol | None = None


def tile_sequence(kernel: Kernel, loop: Loop, bases: Sequence[Index], guard: Cond) -> TileSequence:
    """The tiles of a loop; of all blocks together for a grid-stride loop."""
    number = Symbol(f"{loop.symbol.name}_number", "block", 0)
    for block, blocks in zip(kernel.blocks, kernel.grid, strict=True):
        if isinstance(blocks, Const):
            found = _grid_stride(loop, block, blocks.value, number, bases, guard)
            if found is not None:
                return found
    own = algebra.add(loop.stmt.start, algebra.mul(algebra.sym(number), loop.stmt.step))
    names = {loop.symbol: own}
    moved = tuple(substitute(base, names) for base in bases)
    return TileSequence(number, loop.trips, moved, substitute(guard, names))


def _grid_stride(
    loop: Loop, block: Symbol, blocks: int, number: Symbol, bases: Sequence[Index], guard: Cond
) -> TileSequence | None:
    """The tiles `block + i * blocks`, written as a loop with step `blocks` or as a loop over i."""
    own, stmt, tile = algebra.sym(block), loop.stmt, algebra.sym(number)
    if stmt.start is own and stmt.step == blocks:
        total, names = stmt.stop, {loop.symbol: tile}
    elif stmt.start is algebra.const(0) and stmt.step == 1 and isinstance(stmt.stop, Bin):
        total = algebra.add(stmt.stop.left, own, 1 - blocks)
        if algebra.ceil_div(algebra.sub(total, own), blocks) is not stmt.stop:
            return None
        first = algebra.sub(tile, algebra.mul(algebra.sym(loop.symbol), blocks))
        names = {block: first}
    else:
        return None
    moved, given = tuple(substitute(base, names) for base in bases), substitute(guard, names)
    named = symbols(total, *moved, given)
    return None if block in named or loop.symbol in named else TileSequence(number, total, moved, given, block)
