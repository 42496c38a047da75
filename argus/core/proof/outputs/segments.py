"""Recognises segments of a ragged batch: loops over rows starts[b] <= r < starts[b + 1], or tiles from starts[b] on.

Rows of different segments differ because the starts ascend. That every row between the first and the last start lies
in some segment follows without search: if starts[0] <= r < starts[n], there are neighbours with the same property.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index, Read, Sum, Sym, Symbol
from argus.core.ir import Buffer, Kernel
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.outputs.data_contracts import is_ascending


@frozen(eq=False)
class Segments:
    """segment: the coordinate that numbers segments. starts: each segment's first row, and the end of the last one."""

    segment: Symbol
    starts: Buffer

    def start(self, at: Index) -> Index:
        return algebra.read(self.starts.name, (at,))

    @property
    def begin(self) -> Index:
        """The first row of the first segment."""
        return self.start(algebra.const(0))

    @property
    def end(self) -> Index:
        """One past the last row of the last segment."""
        return self.start(algebra.sub(self.starts.shape[0], 1))


def row_segments(kernel: Kernel, loop: Loop | None) -> Segments | None:
    """The segments whose rows a loop runs through, one segment per block; None if it is no such loop."""
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
    return Segments(number.symbol, starts)


def tile_segments(kernel: Kernel, base: Index, counts: Mapping[Symbol, Index]) -> tuple[Segments | None, Index]:
    """The segments in which tiles lie that begin at `base` = starts[b] + rest, for a grid coordinate b, and that rest.

    Which of their rows are stored is not said here. None, and `base`, if it has no such form.
    """
    for term, factor in base.terms if isinstance(base, Sum) else ((base, 1),):
        if not isinstance(term, Read) or len(term.at) != 1 or factor != 1:
            continue
        number, starts = term.at[0], next(buffer for buffer in kernel.parameters if buffer.name == term.array)
        if isinstance(number, Sym) and number.symbol in counts and is_ascending(starts):
            return Segments(number.symbol, starts), algebra.sub(base, term)
    return None, base
