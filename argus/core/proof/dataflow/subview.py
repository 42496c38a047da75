"""Expresses one view of a tensor as a view of another view of the same tensor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from argus.core import algebra
from argus.core.index import And, Bin, Cond, Index
from argus.core.ir import View
from argus.core.proof.limits import integers
from argus.core.walk import substitute, topological

_MAX_CANDIDATES = 64


def subview_coordinates(view: View, outer: View) -> tuple[Index, ...] | None:
    """The coordinates in `outer` of each element of a view of the same tensor; None if none are found.

    Candidates for an axis of `outer` come from expressions of `outer` that contain its coordinate plainly or divided,
    matched with those of the view. A candidate is accepted only if `outer` at these coordinates equals the view.
    """
    if view.buffer is not outer.buffer or view.peer is not None or outer.peer is not None:
        return None
    candidates = [tuple(dict.fromkeys(_axis_candidates(view, outer, axis))) for axis in range(len(outer.shape))]
    for found in islice(product(*candidates), _MAX_CANDIDATES):
        if tuple(substitute(at, {}, found) for at in outer.at) == view.at:
            return found
    return None


def _axis_candidates(view: View, outer: View, axis: int) -> Iterator[Index]:
    own = algebra.coord(axis)
    for theirs, mine in zip(outer.at, view.at, strict=True):
        if theirs is own:
            yield mine
    divided = {(node.op, node.right) for node in topological(outer.at) if isinstance(node, Bin) and node.left is own}
    for node in topological(view.at):
        if isinstance(node, Bin) and node.op in ("//", "%") and (node.op, node.right) in divided:
            yield node.left


def conjuncts(cond: Cond) -> tuple[Cond, ...]:
    """The conjuncts of a condition; empty for true."""
    if cond is algebra.TRUE:
        return ()
    return cond.parts if isinstance(cond, And) else (cond,)


def in_bounds_conditions(view: View) -> frozenset[Cond]:
    """The conditions that each coordinate of a view lies in its tensor."""
    return frozenset(
        cond
        for at, extent in zip(view.at, view.buffer.shape, strict=True)
        for cond in (algebra.le(0, at), algebra.lt(at, extent))
    )


def same_padding(view: View, outer: View, at: tuple[Index, ...]) -> bool:
    """Whether a padded load through `view` has padding exactly where a load through `outer` at `at` has it.

    That is outside the extents of `outer`, and where the condition of `outer` fails.
    """
    mine = frozenset(conjuncts(view.where))
    theirs = frozenset(conjuncts(substitute(outer.where, {}, at)))
    bounds = frozenset(algebra.lt(each, extent) for each, extent in zip(at, outer.shape, strict=True))
    anywhere = integers.arbitrary_element(view)
    low = all(algebra.le(0, substitute(each, {}, anywhere)) is algebra.TRUE for each in at)
    known = in_bounds_conditions(view) | {algebra.TRUE}
    return low and mine - theirs - known <= bounds and theirs - mine <= known and bounds <= mine | known
