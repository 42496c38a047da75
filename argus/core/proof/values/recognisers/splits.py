"""Sums of sums: a contraction whose parts were summed apart, in registers or by launches before, and are added.

The sum of two sums over one name counts what either counts. That nothing is counted twice is an obligation where the
parts meet; that nothing is left out is what an assertion of coverage says of the result.
"""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.index import Const
from argus.core.ir import Cast, Elem, Get, Op
from argus.core.proof.dataflow.separable_index import Piecewise, equal_indices
from argus.core.proof.values.content import Data, Inside


def is_sum(elem: Elem) -> bool:
    """Whether an expression adds two or more operands and does nothing else, but for rounding."""
    match elem:
        case Op(name="add", args=args):
            return all(_is_operand(arg) or is_sum(arg) for arg in args)
        case Cast(dtype=dtype, arg=arg):
            return dtype.family == "float" and is_sum(arg)
        case _:
            return False


def _is_operand(elem: Elem) -> bool:
    match elem:
        case Get():
            return True
        case Cast(dtype=dtype, arg=arg):
            return dtype.family == "float" and _is_operand(arg)
        case _:
            return False


def common_bounds(one: Data, two: Data) -> tuple[Inside, ...] | None:
    """Where neither of two values is padding, if that is the same for both; None if it is not."""
    mine, theirs = _bounds(one), _bounds(two)
    return mine if _alike(mine, theirs) else None


def _bounds(part: Data) -> tuple[Inside, ...]:
    """Those that may fail."""
    return tuple(bound for bound in part.inside if not always(bound))


def always(bound: Inside) -> bool:
    """Whether a bound cannot fail, as numbers tell."""
    place, extent = bound.coordinate, bound.extent
    if isinstance(place, Piecewise) or not isinstance(extent, Const) or place.base is not algebra.const(0):
        return False
    return (bound.open or place.low >= 0) and place.high < extent.value


def _alike(one: tuple[Inside, ...], two: tuple[Inside, ...]) -> bool:
    return len(one) == len(two) and all(
        a.same_bound(b)
        and np.array_equal(a.coordinate.table, b.coordinate.table)
        and equal_indices(a.coordinate, b.coordinate) is algebra.TRUE
        for a, b in zip(one, two, strict=True)
    )
