"""Where a view of a tensor lies within another view of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from argus.core import algebra
from argus.core.index import And, Bin, Cond, Index
from argus.core.ir import View
from argus.core.proof.limits import integers
from argus.core.walk import substitute, topological

_MOST = 64


def subview_coordinates(view: View, seen: View) -> tuple[Index, ...] | None:
    """The coordinates in `seen` of each element of a view of the same tensor; None if none are found.

    A coordinate of `seen` stands in one of its places as it is or divided by something, and so does what it is in the
    view. What is found is tried: `seen` at these coordinates is the view, expression by expression.
    """
    if view.buffer is not seen.buffer or view.peer is not None or seen.peer is not None:
        return None
    candidates = [tuple(dict.fromkeys(_candidates(view, seen, axis))) for axis in range(len(seen.shape))]
    for found in islice(product(*candidates), _MOST):
        if tuple(substitute(at, {}, found) for at in seen.at) == view.at:
            return found
    return None


def _candidates(view: View, seen: View, axis: int) -> Iterator[Index]:
    own = algebra.coord(axis)
    for theirs, mine in zip(seen.at, view.at, strict=True):
        if theirs is own:
            yield mine
    divided = {(node.op, node.right) for node in topological(seen.at) if isinstance(node, Bin) and node.left is own}
    for node in topological(view.at):
        if isinstance(node, Bin) and node.op in ("//", "%") and (node.op, node.right) in divided:
            yield node.left


def conjuncts(cond: Cond) -> tuple[Cond, ...]:
    """The conditions that a condition is all of."""
    if cond is algebra.TRUE:
        return ()
    return cond.parts if isinstance(cond, And) else (cond,)


def in_bounds_conditions(view: View) -> frozenset[Cond]:
    """What it means that each place of a view lies in its tensor."""
    return frozenset(
        cond
        for at, extent in zip(view.at, view.buffer.shape, strict=True)
        for cond in (algebra.le(0, at), algebra.lt(at, extent))
    )


def same_padding(view: View, seen: View, at: tuple[Index, ...]) -> bool:
    """Whether a load that fills what lies outside takes, through a view, the elements that `seen` has at these
    coordinates, and padding beyond the extents of `seen` and where `seen` has padding.
    """
    mine = frozenset(conjuncts(view.where))
    theirs = frozenset(conjuncts(substitute(seen.where, {}, at)))
    bounds = frozenset(algebra.lt(each, extent) for each, extent in zip(at, seen.shape, strict=True))
    anywhere = integers.arbitrary_element(view)
    low = all(algebra.le(0, substitute(each, {}, anywhere)) is algebra.TRUE for each in at)
    known = in_bounds_conditions(view) | {algebra.TRUE}
    return low and mine - theirs - known <= bounds and theirs - mine <= known and bounds <= mine | known
