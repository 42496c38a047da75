"""The axes of nests with reductions: those that reductions depend on, and those that are computed after them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.nests.nest import Axis, Nest, Reduce
from argus.nests.rewrite import indices, reads, reductions
from argus.nests.terms import coordinates_in, literal, names_in


@frozen(eq=False)
class Shape:
    """The axes of nests with reductions.

    kept: axes of the output on which reductions depend. along: those that are computed after the reductions. of: the
    reductions, inner ones first.
    """

    kept: tuple[Axis, ...]
    along: tuple[Axis, ...]
    of: tuple[Reduce, ...]


def shape_of(nests: Sequence[Nest]) -> Shape | None:
    """The axes of nests of one domain; None if their reductions are not all over as many axes."""
    found = _inner_first(nests)
    domain = nests[0].domain
    if not found or any(nest.domain != domain for nest in nests) or len({len(each.axes) for each in found}) != 1:
        return None
    if any(coordinates_in(axis.extent) for each in found for axis in each.axes):
        return None
    parts = (*indices(*found), *(index for read in reads(*found) for index in read.index))
    named = {name for part in parts for name in names_in(part)}
    kept = tuple(axis for axis in domain if axis.name in named or literal(axis.extent) == 1)
    return Shape(kept, tuple(axis for axis in domain if axis not in kept), found)


def _inner_first(nests: Sequence[Nest]) -> tuple[Reduce, ...]:
    """The reductions, each after those in its body."""
    found: dict[Reduce, None] = {}

    def visit(of: Sequence[Reduce]) -> None:
        for each in of:
            if each not in found:
                visit(reductions(each.body))
                found[each] = None

    visit(reductions(*(nest.body for nest in nests)))
    return tuple(found)
