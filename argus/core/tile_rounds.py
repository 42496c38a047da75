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

    def place(self, block: Index, turn: Index) -> Index:
        """The place of a block in a round, from 0; of a place in a zigzag, the block.

        In a zigzag it is |q - block|, with q 0 in even rounds and the last place in odd ones: one node, which a proof
        can replace wherever it occurs.
        """
        if not self.zigzag:
            return block
        first = algebra.mul(algebra.mod(turn, 2), self.blocks - 1)
        return algebra.maximum(algebra.sub(first, block), algebra.sub(block, first))

    def number(self, block: Index, turn: Index) -> Index:
        """The number of a block's tile in a round."""
        return algebra.add(self.place(block, turn), algebra.mul(turn, self.blocks))

    def beyond(self, block: Index, total: Index) -> Index:
        """The tiles from the block's first on, of `total` in all: only the last round may leave blocks out."""
        return algebra.sub(total, self.place(block, algebra.floordiv(total, self.blocks)))

    def count(self, block: Index, total: Index) -> Index:
        """The number of a block's tiles."""
        return algebra.ceil_div(self.beyond(block, total), self.blocks)

    def takes(self, block: Index, turn: Index, total: Index) -> Cond:
        """`turn < count`, without a division."""
        return algebra.lt(algebra.mul(turn, self.blocks), self.beyond(block, total))

    def owner(self, number: Index) -> tuple[Index, Index]:
        """The block and the round of a tile."""
        turn = algebra.floordiv(number, self.blocks)
        return self.place(algebra.mod(number, self.blocks), turn), turn
