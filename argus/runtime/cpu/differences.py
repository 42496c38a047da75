"""Tells where the outputs of an executed text differ from the interpreter's, and from the formulas claimed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.verifier.claimed_formulas import ClaimedOutput
from argus.verifier.reference import Exact, interpreted_bound

Array = npt.NDArray[Any]


@frozen
class Difference:
    """The first element in which an output differs, of `count`.

    found: by the text. expected: by the interpreter, or by the claimed formula.
    """

    tensor: str
    index: tuple[int, ...]
    found: str
    expected: str
    count: int


def first_difference(
    found: Mapping[str, Array], expected: Mapping[str, Array], claims: Sequence[ClaimedOutput], *, exact: bool
) -> Difference | None:
    """The first element that differs from its claimed formula, or from the interpreter's.

    found: the text's outputs. expected: the interpreter's. exact: whether those two must agree bit for bit. Otherwise
    each differs from a claimed formula by at most its bound, so the two differ by at most twice that; where no formula
    is claimed, they agree within some roundings of the output's largest element.
    """
    for claim in claims:
        if (differs := _from_claim(claim, found[claim.output], "")) is not None:
            return differs
        if (differs := _from_claim(claim, expected[claim.output], " (found by the interpreter)")) is not None:
            return differs
    for name, array in expected.items():
        own = [each for each in claims if each.output == name]
        bound = np.zeros(array.shape) if exact else _bound(array, own)
        if (differs := _beyond(name, found[name], array, bound, overflows=_overflows(own))) is not None:
            return differs
    return None


def _from_claim(claim: ClaimedOutput, output: Array, note: str) -> Difference | None:
    """The first element that differs from its formula beyond what rounding explains."""
    ours = output[claim.rows].astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (ours == claim.expected) | (np.abs(ours - claim.expected) <= claim.bound)
    differs = ~near & ~np.isinf(claim.bound)
    if not differs.any():
        return None
    row, *rest = (int(axis[0]) for axis in np.nonzero(differs))
    at, expected = (row, *rest), f"{claim.expected[row, *rest]}, as claimed"
    return Difference(claim.output, (int(claim.rows[row]), *rest), f"{ours[at]}{note}", expected, int(differs.sum()))


def _bound(array: Array, claims: Sequence[ClaimedOutput]) -> Exact:
    """How far each element of a text's output may be from the interpreter's."""
    bound = interpreted_bound(array)
    for claim in claims:
        of_claim = np.where(np.isfinite(claim.bound), 2 * claim.bound, 0.0)
        bound[claim.rows] = np.maximum(bound[claim.rows], of_claim)
    return bound


def _overflows(claims: Sequence[ClaimedOutput]) -> bool:
    """Whether parts of an element overflow, so that the order of their sum decides between an infinity and NaN.

    Not every row of an output is computed in float64, so those that are speak for the others.
    """
    return any(bool(np.isinf(claim.bound).any()) for claim in claims)


def _beyond(name: str, found: Array, expected: Array, bound: Exact, *, overflows: bool) -> Difference | None:
    """The first element that is further from the expected one than its bound.

    Equal infinities and NaNs agree; if sums overflow, any infinities and NaNs do.
    """
    ours, theirs = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | (np.abs(ours - theirs) <= bound)
        near |= overflows & ~np.isfinite(ours) & ~np.isfinite(theirs)
    if near.all():
        return None
    at = tuple(int(axis[0]) for axis in np.nonzero(~near))
    return Difference(name, at, str(ours[at]), str(theirs[at]), int((~near).sum()))
