"""Obligations of loads through gathered views: alignment of vectors (I19) and integer width (I28).

A gathered view computes the coordinates of each element; elements whose condition fails are padding. A coordinate such
as `m // (P * Q)` is not the sum of a symbolic part and a table of numbers; `piecewise_index` represents it by cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Coord
from argus.core.ir import Copy, Strided, View
from argus.core.proof.dataflow.access import Access, Accesses
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.limits import integers, vectors
from argus.core.proof.limits.boxes import stride_divisible
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.content import Inside
from argus.core.walk import mentions, substitute

ROW_GATHER = (
    "load the rows that integers name with `edge=0`, of a plain gather: "
    "`load(X.gather((64, 32), lambda i, j: (scalar(index[64 * m + i]), 32 * d + j)), by, edge=0)`"
)


def load_bounds(accesses: Accesses, access: Access, places: Sequence[FragmentIndex]) -> tuple[Inside, ...] | None:
    """The condition under which a load reads the tensor and not padding, as bounds of coordinates.

    First one bound per axis of the tensor (also where it always holds, so that the form is uniform), then the rest of
    the view's condition. None if part of that condition is not a bound of a coordinate.
    """
    buffer = access.view.buffer
    inside = [Inside(place, extent) for place, extent in zip(places, buffer.shape, strict=True)]
    for cond in _extra_conditions(access.view):
        assert access.by is not None
        bound = _upper_bound(accesses, access, cond)
        if bound is None:
            return None
        inside.append(bound)
    return tuple(inside)


def _extra_conditions(view: View) -> tuple[Cond, ...]:
    """The conjuncts of a view's condition that do not just state that coordinates lie in the tensor."""
    parts = view.where.parts if isinstance(view.where, And) else (view.where,)
    edges = {
        cond
        for at, extent in zip(view.at, view.buffer.shape, strict=True)
        for cond in (algebra.le(0, at), algebra.lt(at, extent))
    }
    return tuple(part for part in parts if part not in edges)


def _upper_bound(accesses: Accesses, access: Access, cond: Cond) -> Inside | None:
    """A condition `place <= most` as a bound of a coordinate that is never negative; None for other conditions."""
    if not isinstance(cond, Cmp) or cond.op != "<=" or mentions(cond.right, (Coord,)):
        return None
    assert access.by is not None
    for left in (algebra.sub(cond.left, 1), cond.left):
        place = accesses.fragment_index(left, access.by)
        never_negative = algebra.le(0, substitute(left, {}, integers.arbitrary_element(access.view)))
        if place is not None and never_negative is algebra.TRUE:
            return Inside(place, algebra.add(cond.right, algebra.sub(left, cond.left), 1))
    return None


def gather_obligations(accesses: Accesses, step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """I19: vectors are aligned, and each is either in the tensor or padding; I28: coordinates fit their type."""
    buffer = access.view.buffer
    count = stmt.atom.vector_bits // buffer.dtype.bits
    align = stmt.atom.operands["source"].align
    what = f"`{stmt.atom}` moves {count} consecutive elements of `{buffer.name}` from a multiple of {align} bytes"
    reason = _why_not_vectors(access, stmt, load_bounds(accesses, access, access.gathered or ()), count)
    if reason:
        yield from vectors.gathered_vector_obligations(step, stmt, access)
        return
    last = (access.gathered or (None,))[-1]
    assert isinstance(last, Separable)
    assert isinstance(buffer.layout, Strided)
    wide = align * 8 // buffer.dtype.bits
    start = algebra.add(last.base, int(last.table.flat[0]))
    along = [algebra.eq(algebra.mod(start, each), 0) for each in (wide, count)]
    rows = [stride_divisible(stride, wide) for stride in buffer.layout.strides[:-1]]
    plain = buffer.layout.strides[-1] is algebra.const(1) and buffer.align % align == 0
    yield Obligation(
        "I19",
        what,
        stmt,
        algebra.all_of((*along, *rows)) if plain else algebra.FALSE,
        step.context,
        compared=last.table.size // count,
        help=f"`assume` that the row length is a multiple of {wide}, or use a narrower instruction",
    )
    yield Obligation(
        "I19",
        f"no vector of {count} elements reaches over the edge of `{buffer.name}`",
        stmt,
        algebra.eq(algebra.mod(buffer.shape[-1], count), 0),
        step.context,
        compared=last.table.size // count,
        help="`assume` that the row length is whole vectors, or use a narrower instruction",
    )
    yield from integers.gather_width_obligations(step, stmt, access)


def _why_not_vectors(access: Access, stmt: Copy, inside: tuple[Inside, ...] | None, count: int) -> str:
    """Why the coordinate tables of a load do not form whole vectors; empty if they do.

    inside: first the bounds of each axis of the tensor, then those of the view.
    """
    if inside is None:
        return "a view's condition that is not a coordinate bound"
    axes = len(access.view.buffer.shape)
    last, values = inside[axes - 1].coordinate, access.shape[1]
    if not isinstance(last, Separable) or values % count:
        return "elements that do not form whole vectors along the last axis of a gathered tensor"
    groups = last.table.reshape(access.shape[0], -1, count)
    regular = (groups[:, :, :1] + np.arange(count) == groups).all() and (
        groups[:, :, 0] % count == groups.flat[0] % count
    ).all()
    wide = stmt.atom.operands["source"].align * 8 // access.view.buffer.dtype.bits
    regular = regular and bool((groups[:, :, 0] % wide == groups.flat[0] % wide).all())
    rest = (*inside[: axes - 1], *inside[axes:])
    others = all(_constant_in_vectors(bound.coordinate, access.shape, count) for bound in rest)
    return "" if regular and others else "a vector whose elements a gathered view takes from different rows"


def _constant_in_vectors(place: FragmentIndex, shape: tuple[int, int], count: int) -> bool:
    groups = place.table.reshape(shape[0], -1, count)
    return bool((groups == groups[:, :, :1]).all())
