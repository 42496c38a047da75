"""Sums of e4m3 products with scales of blocks on Hopper: partial sums of 128 of K are scaled and added in f32.

wgmma, which accumulates FP8 products with few bits, sums each 128 of K into a partial sum of its own: promotion
[DeepSeek-V3 2024, section 3.3.2].
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain

from argus.language import Fragment, Int, Slot, Turns, e4m3, f32, mma, registers, wgmma

BLOCK = 128
"""Elements of k, and rows of B, that share a scale."""
WIDTH = 64
"""Columns of an epilogue box, and of a piece."""
_ROWS = 64


def pieces_of(columns: int) -> int:
    """Parts of the columns of a tile that have scales of B of their own."""
    return 1 if columns == BLOCK else columns // WIDTH


def blocks_of(n: Int, columns: int) -> list[Int]:
    """For each piece of the n-th tile of so many columns, its number among blocks of 128 columns."""
    pieces = pieces_of(columns)
    return [n] if pieces == 1 else [(pieces * n + piece) // (BLOCK // WIDTH) for piece in range(pieces)]


class Sums:
    """Accumulators of a warpgroup: `part` for one block of K and 64 rows; `accs` for all of K, for each 64 rows one for
    each piece of the columns. parts: how many times 64 rows.
    """

    def __init__(self, columns: int, parts: int = 1) -> None:
        self.mm = wgmma(e4m3, n=columns)
        self.part = registers(f32, self.mm.C)
        pieces = pieces_of(columns)
        self.layout = self.mm.C if pieces == 1 else wgmma(e4m3, n=WIDTH).C
        """Of an accumulator."""
        self.accs = [[registers(f32, self.layout) for _ in range(pieces)] for _ in range(parts)]

    def clear(self) -> None:
        for acc in chain(*self.accs):
            acc[:] = 0.0

    def pieces(self) -> list[Fragment]:
        """The pieces of the columns of `part`."""
        count = len(self.accs[0])
        return [self.part] if count == 1 else [self.part.tile((_ROWS, WIDTH), (0, j)) for j in range(count)]

    def multiply(self, slot: Slot, wg: Int, p: int = 0, turns: Turns | None = None) -> None:
        """Issue the wgmma of the warpgroup's p-th 64 rows; with `turns`, in the warpgroups' fixed order."""
        with nullcontext() if turns is None else turns(wg):
            a = slot.a.tile((_ROWS, BLOCK), (len(self.accs) * wg + p, 0))
            mma(self.mm, self.part, a, slot.b, init=True)

    def columns(self, p: int, number: int) -> Fragment:
        """The number-th 64 columns of the p-th 64 rows."""
        held = self.accs[p]
        return held[number] if len(held) > 1 else held[0].tile((_ROWS, WIDTH), (0, number))
