"""What a read of shared memory finds, from the writes that reach its elements.

Elements that the same writes reach are a class. Which of them was last depends on conditions alone, so the cases of a
class are compared by what is known: often what was written before a loop is what its first iterations would have
written. Classes that then differ in tables alone are one expression, whichever iterations wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from argus.core.proof.dataflow.reaching import ReachingWrite
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.tables import BoolArray, Positions, Tables, alike_columns
from argus.core.proof.values.held.terms import chosen, unknown
from argus.core.values.expr import Expr

ValueOf = Callable[[ReachingWrite, Callable[[Positions], Positions]], Expr]
"""What a write has left in the elements of a read; given the change of the positions at which it was written."""


def found_by(tables: Tables, sources: Sequence[ReachingWrite], value_of: ValueOf, known: Known) -> Expr:
    """The value at each element. sources: those that may have written it, the first choice last."""
    classes = _classes(sources)
    if not classes:
        return unknown("nothing is written")
    masks = [mask for mask, _ in classes]
    values = [_of_class(own, value_of, mask if len(classes) > 1 else None) for mask, own in classes]
    found = _joined(tables, masks, values)
    if found is None:
        values = [known.simplified(each) for each in values]
        found = _joined(tables, masks, values)
    if found is None:
        found = values[0]
        for mask, value in zip(masks[1:], values[1:], strict=True):
            found = chosen(tables.mask(mask), value, found)
    return found


def _joined(tables: Tables, masks: Sequence[BoolArray], values: Sequence[Expr]) -> Expr | None:
    """The values of all classes as one expression; None if they differ in more than tables."""
    found: Expr | None = values[0]
    for mask, value in zip(masks[1:], values[1:], strict=True):
        found = None if found is None else tables.joined(mask, value, found)
    return found


def _classes(sources: Sequence[ReachingWrite]) -> list[tuple[BoolArray, list[ReachingWrite]]]:
    """The elements that the same writes reach, with those; elements that none reaches are in no class."""
    if not sources:
        return []
    reached = np.stack([each.mask for each in sources])
    flat = reached.reshape(len(sources), -1)
    first, which = alike_columns(flat.astype(np.int64))
    which = which.reshape(reached.shape[1:])
    return [
        (which == number, [each for each, here in zip(sources, kind, strict=True) if here])
        for number, kind in enumerate(flat.T[first])
        if kind.any()
    ]


def _of_class(sources: Sequence[ReachingWrite], value_of: ValueOf, mask: BoolArray | None) -> Expr:
    """The value at elements that all these writes may reach; elsewhere that at one of them. mask: None: all of them."""

    def inside(positions: Positions) -> Positions:
        if mask is None:
            return positions
        thread, value = (np.where(mask, each, each[mask][0]) for each in positions)
        return thread, value

    found: Expr | None = None
    for each in sources:
        value = value_of(each, inside)
        found = value if found is None else chosen(each.guard, value, found)
    assert found is not None
    return found
