"""Joins the pieces of a content whose formulas agree, so that it has as few cases as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond
from argus.core.proof.dataflow.lookup import split_by_region, union_pieces
from argus.core.proof.dataflow.separable_index import FragmentIndex, equal_indices
from argus.core.proof.values.content import BoolArray, Content, Data, Piece

Holds = Callable[[Sequence[Cond], Cond], bool]
"""Whether a condition follows from the given conditions and the facts of the kernel."""


def merge_pieces(pieces: Content, context: Sequence[Cond], holds: Holds) -> Content:
    """Join pieces whose formulas agree.

    First joins guards per element (the first iteration with the later ones), then elements with one formula.
    context: conditions that hold where the content is read.
    """
    cases = _merge_pairwise(split_by_region(pieces), context, holds)
    simplified = tuple(_drop_known_guard(piece, context, holds) for piece in cases)
    while len(simplified) > 1:
        cases = _merge_pairwise(simplified, context, holds)
        if len(cases) == len(simplified):
            return cases
        simplified = tuple(_drop_known_guard(piece, context, holds) for piece in cases)
    return simplified


def _merge_pairwise(pieces: Content, context: Sequence[Cond], holds: Holds) -> Content:
    found: list[Piece] = []
    for piece in reversed(pieces):
        for place, other in enumerate(found):
            one = _merge_two(other, piece, context, holds)
            if one is not None:
                found[place] = one
                break
        else:
            found.append(piece)
    return tuple(found)


def _drop_known_guard(piece: Piece, context: Sequence[Cond], holds: Holds) -> Piece:
    return evolve(piece, guard=algebra.TRUE) if holds(context, piece.guard) else piece


def _merge_two(one: Piece, two: Piece, context: Sequence[Cond], holds: Holds) -> Piece | None:
    """Two pieces as one: if they cover the same elements under two guards, or disjoint elements under one guard."""
    if not isinstance(one.value, Data) or not isinstance(two.value, Data):
        return None
    if np.array_equal(one.mask, two.mask):
        guard = algebra.any_of((one.guard, two.guard))
        for piece, other in ((one, two), (two, one)):
            assert isinstance(piece.value, Data)
            assert isinstance(other.value, Data)
            if _equal_formulas(piece.value, other.value, piece.mask, [*context, other.guard], holds):
                return evolve(piece, guard=guard)
        return None
    if one.guard is two.guard and not (one.mask & two.mask).any():
        return union_pieces(one, two)
    return None


def _equal_formulas(one: Data, two: Data, mask: BoolArray, context: Sequence[Cond], holds: Holds) -> bool:
    """Whether both values have the same formula at the elements of the mask."""
    if one.terms or two.terms or one.record.keys() != two.record.keys():
        return False
    if one.fill != two.fill or len(one.inside) != len(two.inside):
        return False
    if one.sets is not None or two.sets is not None or not one.plain or not two.plain:
        return False
    if (one.root, one.times, one.factors) != (two.root, two.times, two.factors):
        return False
    if (one.form, one.computed) != (two.form, two.computed):
        return False
    pairs: list[tuple[FragmentIndex, FragmentIndex]] = [(one.record[name], two.record[name]) for name in one.record]
    for mine, theirs in zip(one.inside, two.inside, strict=True):
        if not mine.same_bound(theirs):
            return False
        pairs.append((mine.coordinate, theirs.coordinate))
    where = () if mask.all() else np.nonzero(mask)
    return all(holds(context, equal_indices(a.at(where), b.at(where))) for a, b in pairs)
