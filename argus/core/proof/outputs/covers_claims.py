"""Translates the sets of `assert_covers` claims into the coordinates of another tile.

The bounds and the condition of a claim may name coordinates of the tile it is about. An element of another tile
corresponds to the element with the same tags: each coordinate is recovered from a tag that depends on it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.ir import Assert, Covers, View
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import affine, coordinate_axes
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.values.content import Data
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import substitute, symbols


@frozen(eq=False)
class CoveredSet:
    """The values [low, high) of a tag, for the elements where `where` holds."""

    low: Index
    high: Index
    where: Cond


def covered_sets(
    flow: ValueFlow, counted: str, record: Mapping[str, FragmentIndex], held: TV | None, at: Step | None = None
) -> Iterator[CoveredSet]:
    """Each set that an assertion gives for the tag `counted`, for elements with this record.

    held: the layout of the tile whose coordinates the result uses. at: a step; assertions under its condition, in its
    loop, are made whenever it executes, and count too.
    """
    for step in flow.timeline.steps:
        if not isinstance(step.stmt, Assert) or not isinstance(step.stmt.claim, Covers):
            continue
        claim = step.stmt.claim
        made_there = at is not None and step.loop is at.loop and step.guard is at.guard
        if (step.guard is not algebra.TRUE and not made_there) or claim.of.name != counted:
            continue
        found = _of_elements(flow, step, claim, record, held)
        own = {step.loop.symbol} if step.loop is not None else set[Symbol]()
        if found is not None and not own & symbols(found.low, found.high, found.where):
            yield found


def covered_sets_by_place(
    flow: ValueFlow, counted: str, at: Step, tile: View, places: Sequence[Index | None]
) -> tuple[tuple[CoveredSet, str], ...]:
    """Each set that an assertion in the same iteration gives for the stored tile itself, with a description.

    An element is then identified only by where it is stored, so the upper bound of the set must be its index along
    some axis plus a term that is the same for all elements and iterations. places: the elements' indices by axis.
    """
    found: list[tuple[CoveredSet, str]] = []
    for step in flow.timeline.steps:
        if not isinstance(step.stmt, Assert) or not isinstance(step.stmt.claim, Covers) or step.loop is not at.loop:
            continue
        claim = step.stmt.claim
        own = set[Symbol]() if step.loop is None else {step.loop.symbol}
        alone = claim.of.name == counted and step.guard is algebra.TRUE and is_whole(claim.of.view)
        if (
            not alone
            or claim.of.view.buffer is not tile.buffer
            or coordinate_axes(claim.low)
            or own & symbols(claim.low)
        ):
            continue
        for axis, place in enumerate(places):
            rest = None if place is None else algebra.sub(claim.high, place)
            if rest is not None and not coordinate_axes(rest) and not own & symbols(rest):
                words = f"[{show(claim.low)}, its place along axis {axis} + {show(rest)})"
                found.append((CoveredSet(claim.low, claim.high, claim.where), words))
                break
    return tuple(found)


def _of_elements(
    flow: ValueFlow, step: Step, claim: Covers, record: Mapping[str, FragmentIndex], held: TV | None
) -> CoveredSet | None:
    """The set of a claim for these elements; None if it depends on coordinates that their tags do not determine."""
    parts = (claim.low, claim.high, claim.where)
    named = coordinate_axes(*parts)
    if not named:
        return CoveredSet(*parts)
    content, own = flow.tile(step, claim.of.view), claim.of.view.buffer.layout
    if held is None or not isinstance(own, TV) or not is_whole(claim.of.view):
        return None
    if len(content) != 1 or not isinstance(content[0].value, Data):
        return None
    known, places = content[0].value.record, list[Index]()
    for axis in range(len(own.tile)):
        place = _coordinate_by_tag(axis, known, own, record, held) if axis in named else algebra.const(0)
        if place is None:
            return None
        places.append(place)
    low, high = (substitute(bound, {}, places) for bound in (claim.low, claim.high))
    return CoveredSet(low, high, substitute(claim.where, {}, places))


def _coordinate_by_tag(
    axis: int, known: Mapping[str, FragmentIndex], own: TV, record: Mapping[str, FragmentIndex], held: TV
) -> Index | None:
    """The coordinate along an axis of the claim's tile of the elements with a record, over their own coordinates."""
    for name, sep in known.items():
        mine, theirs = _expression(sep, own), _expression(record.get(name), held)
        if mine is None or theirs is None:
            continue
        rest = algebra.sub(mine, algebra.coord(axis))
        if not coordinate_axes(rest):
            return algebra.sub(theirs, rest)
    return None


def _expression(component: FragmentIndex | None, held: TV) -> Index | None:
    if not isinstance(component, Separable):
        return None
    own = affine(component.table, held)
    return None if own is None else algebra.add(component.base, own)
