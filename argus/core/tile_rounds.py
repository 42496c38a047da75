"""How a persistent kernel distributes numbered tiles over its blocks: in rounds of one tile a block.

Round i has tiles i * blocks up to (i + 1) * blocks. In a zigzag, odd rounds go from the last block to the first: where
tiles become shorter from one number to the next, the block with the longest of one round gets the shortest of the next.
"""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index


@frozen
class TileRounds:
    """Rounds of `blocks` tiles; zigzag: the blocks are taken in reverse in odd rounds."""

    blocks: int
    zigzag: bool = False

    def place(self, block: Index, i: Index) -> Index:
        """The place of a block in round i, from 0; given a place, the block that has it.

        In a zigzag it is |q - block|, with q 0 in even rounds and the last place in odd ones: one node, which a proof
        can replace wherever it occurs.
        """
        if not self.zigzag:
            return block
        first = algebra.mul(algebra.mod(i, 2), self.blocks - 1)
        return algebra.maximum(algebra.sub(first, block), algebra.sub(block, first))

    def number(self, block: Index, i: Index) -> Index:
        """The number of a block's tile in round i."""
        return algebra.add(self.place(block, i), algebra.mul(i, self.blocks))

    def remaining(self, block: Index, total: Index) -> Index:
        """`total` less the block's place in the last round, the only one in which it may have no tile."""
        return algebra.sub(total, self.place(block, algebra.floordiv(total, self.blocks)))

    def count(self, block: Index, total: Index) -> Index:
        """The number of a block's tiles."""
        return algebra.ceil_div(self.remaining(block, total), self.blocks)

    def takes(self, block: Index, i: Index, total: Index) -> Cond:
        """`i < count`, without a division."""
        return algebra.lt(algebra.mul(i, self.blocks), self.remaining(block, total))

    def owner(self, number: Index) -> tuple[Index, Index]:
        """The block and the round of a tile."""
        i = algebra.floordiv(number, self.blocks)
        return self.place(algebra.mod(number, self.blocks), i), i
