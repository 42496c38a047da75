"""Loops over the rows of one of several sequences that lie one after the other: starts[b] <= r < starts[b + 1].

Rows of different sequences differ because starts ascend. That each row has its sequence is no search: between two
elements, one not above a number and one above it, there are neighbours of which the same holds.
"""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index, Read, Sym, Symbol
from argus.core.ir import Buffer, Kernel
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.outputs.data_contracts import is_ascending


@frozen(eq=False)
class Ragged:
    """row: of the loop. sequence: the coordinate of the grid that is the sequence's number. starts: of sequences."""

    row: Symbol
    sequence: Symbol
    starts: Buffer

    def start(self, at: Index) -> Index:
        return algebra.read(self.starts.name, (at,))

    @property
    def begin(self) -> Index:
        """The first row of the first sequence."""
        return self.start(algebra.const(0))

    @property
    def end(self) -> Index:
        """The row after the last of the last sequence."""
        return self.start(algebra.sub(self.starts.shape[0], 1))


def ragged(kernel: Kernel, loop: Loop | None) -> Ragged | None:
    """The sequences whose rows a loop runs through, one a block; None if it is no such loop."""
    if loop is None or loop.stmt.step != 1:
        return None
    start, stop = loop.stmt.start, loop.stmt.stop
    if not isinstance(start, Read) or not isinstance(stop, Read) or start.array != stop.array or len(start.at) != 1:
        return None
    number = start.at[0]
    starts = next(buffer for buffer in kernel.parameters if buffer.name == start.array)
    if stop.at[0] is not algebra.add(number, 1) or not is_ascending(starts):
        return None
    if not isinstance(number, Sym) or number.symbol not in kernel.blocks:
        return None
    return Ragged(loop.symbol, number.symbol, starts)
