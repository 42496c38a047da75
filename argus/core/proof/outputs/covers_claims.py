"""Sets that assertions of coverage state, in terms of another tile's elements.

Bounds and conditions may name the coordinates of the tile that an assertion is about. An element of another tile is
the one meant if it has the same tags: a coordinate is found by the name that it alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assert, Covers, View
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import affine, coordinate_axes
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable
from argus.core.proof.dataflow.timeline import Step, is_whole
from argus.core.proof.values.content import Data
from argus.core.walk import show, substitute, symbols


@frozen(eq=False)
class Stated:
    """The numbers of [low, high), of elements where `where` holds."""

    low: Index
    high: Index
    where: Cond


def stated(flow: Flow, counted: str, record: Mapping[str, FragmentIndex], held: TV | None) -> Iterator[Stated]:
    """Each set that an assertion states of a name, of elements with this record, over their coordinates in a tile."""
    for step in flow.timeline.steps:
        if not isinstance(step.stmt, Assert) or not isinstance(step.stmt.claim, Covers):
            continue
        claim = step.stmt.claim
        if step.guard is not algebra.TRUE or claim.of.name != counted:
            continue
        found = _of_elements(flow, step, claim, record, held)
        own = {step.loop.symbol} if step.loop is not None else set[Symbol]()
        if found is not None and not own & symbols(found.low, found.high, found.where):
            yield found


def of_own_places(
    flow: Flow, counted: str, at: Step, tile: View, places: Sequence[Index | None]
) -> tuple[tuple[Stated, str], ...]:
    """Each set that an assertion in the same iteration states of the very tile that is stored, with words for it.

    Nothing but its place tells which element is meant then, so the set's end must be that place, along some axis, up
    to what is the same for all elements and iterations. places: where the elements are stored, by coordinates.
    """
    found: list[tuple[Stated, str]] = []
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
                found.append((Stated(claim.low, claim.high, claim.where), words))
                break
    return tuple(found)


def everywhere_alike(flow: Flow, counted: str) -> frozenset[tuple[Index, Index]]:
    """The bounds that assertions state of a name, each once; none if one of them speaks of some elements alone."""
    claims = [step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    covers = [claim for claim in claims if isinstance(claim, Covers) and claim.of.name == counted]
    if any(claim.where is not algebra.TRUE or coordinate_axes(claim.low, claim.high) for claim in covers):
        return frozenset()
    return frozenset((each.low, each.high) for each in stated(flow, counted, {}, None))


def _of_elements(
    flow: Flow, step: Step, claim: Covers, record: Mapping[str, FragmentIndex], held: TV | None
) -> Stated | None:
    """What a claim says of these elements; None if it speaks of elements in a way that their tags do not tell."""
    parts = (claim.low, claim.high, claim.where)
    named = coordinate_axes(*parts)
    if not named:
        return Stated(*parts)
    content, own = flow.tile(step, claim.of.view), claim.of.view.buffer.layout
    if held is None or not isinstance(own, TV) or not is_whole(claim.of.view):
        return None
    if len(content) != 1 or not isinstance(content[0].value, Data):
        return None
    known, places = content[0].value.record, list[Index]()
    for axis in range(len(own.tile)):
        place = _place(axis, known, own, record, held) if axis in named else algebra.const(0)
        if place is None:
            return None
        places.append(place)
    low, high = (substitute(bound, {}, places) for bound in (claim.low, claim.high))
    return Stated(low, high, substitute(claim.where, {}, places))


def _place(
    axis: int, known: Mapping[str, FragmentIndex], own: TV, record: Mapping[str, FragmentIndex], held: TV
) -> Index | None:
    """The coordinate along an axis of the tile that is spoken of, of elements with a record, over a tile of theirs."""
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
