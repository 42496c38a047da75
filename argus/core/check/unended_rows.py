"""Products that sum over rows whose end only integers in memory know, such as those of a packed sequence."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.index import Coord, Index, Read
from argus.core.ir import Copy, Kernel, Mma, View, walk
from argus.core.ir.view_ends import view_ends
from argus.core.walk import mentions, topological


def ends_rows(kernel: Kernel) -> bool:
    """Whether a tile of a tensor ends with its view, from where on it is read as zeros."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy) and stmt.source.buffer.space == "global"]
    return any(each.sign < 0 for copy in copies for each in view_ends(copy.source) or ())


def unended_rows(kernel: Kernel) -> tuple[Copy, ...]:
    """The copies of rows that products sum over from a place on that an integer in memory chooses, without an end.

    Of rows beyond those that belong there, a product reads what they hold, and not zeros.
    """
    stmts = list(walk(kernel.body))
    copies = [stmt for stmt in stmts if isinstance(stmt, Copy) and stmt.source.buffer.space == "global"]
    factors = {(view.buffer, axis) for stmt in stmts if isinstance(stmt, Mma) for view, axis in _summed_axes(stmt)}
    return tuple(
        copy
        for copy in copies
        if any(copy.target.buffer is of and _is_open(copy.source, copy.target.at[axis]) for of, axis in factors)
    )


def _summed_axes(stmt: Mma) -> Iterator[tuple[View, int]]:
    """The axes of both factors' buffers along which a product sums."""
    for view in (stmt.a, stmt.b):
        last = len(view.shape) - 1
        yield from ((view, axis) for axis, at in enumerate(view.at) if last in _axes(at))


def _is_open(source: View, along: Index) -> bool:
    """Whether memory chooses where a tile begins in the direction of `along`, and not where it ends."""
    moving = {axis for axis, at in enumerate(source.at) if _axes(at) & _axes(along) and mentions(at, (Read,))}
    ended = {each.axis for each in view_ends(source) or () if each.sign < 0 and mentions(each.rest, (Read,))}
    return not moving <= ended


def _axes(at: Index) -> frozenset[int]:
    return frozenset(node.axis for node in topological((at,)) if isinstance(node, Coord))
