"""Whether an output is the product: element by element, and by the statistics that only full precision has.

An element of a sum of k products in float32, rounded once to bfloat16, is off by at most u |c| + (1 + u) e with
e = k 2^-23 sum |a b| and u = 2^-8. For large k this bound, made for the worst order of the worst signs, lets lower
precision by: e grows as k^2, the error of sums in bfloat16 only as k. The mean square does not: of normal numbers the
sum in float32 adds little to the error of the last rounding, which is known since the exact result is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen
from ml_dtypes import bfloat16

from argus.optimizer.examination.inputs import Case
from argus.reference import F32_ROUNDING, Exact, compared

Rows = npt.NDArray[np.int64]
_ROUNDING = 2.0**-8
_SLACK = 1.15
"""Root mean square of the error over that of one rounding, at most: two roundings in a row have 1.3 or more."""
_ENOUGH = 2048
"""Elements of which the statistics are taken."""
_SIGMAS = 6.0


@frozen
class Complaint:
    """precise: whether only statistics tell."""

    text: str
    precise: bool


def rows(case: Case, generator: np.random.Generator, most_products: int) -> Rows:
    """All, or one at random of each band; the first and the last among them."""
    m, n, k = case.shape
    affordable = max(4, most_products // max(1, n * k))
    if m <= affordable:
        return np.arange(m, dtype=np.int64)
    edges: list[int] = np.linspace(0, m, affordable - 1).astype(np.int64).tolist()
    drawn = [int(generator.integers(low, high)) for low, high in pairwise(edges)]
    return np.array(sorted({0, m - 1, *drawn}), np.int64)


def exact(case: Case, chosen: Rows) -> tuple[Exact, Exact]:
    """Those rows of A @ B^T in float64, and of |A| @ |B|^T."""
    left, right = case.left[chosen].astype(np.float64), case.right.astype(np.float64)
    return left @ right.T, np.abs(left) @ np.abs(right).T


def complaint(case: Case, found: npt.NDArray[Any], chosen: Rows, *, numbers: bool, precision: bool) -> Complaint | None:
    """What is wrong with these rows of an output. numbers, precision: what is looked at."""
    product, sizes = exact(case, chosen)
    made = found[chosen].astype(np.float64)
    depth = case.shape[2]
    bound = _ROUNDING * np.abs(product) + (1 + _ROUNDING) * depth * F32_ROUNDING * sizes
    told = compared(made, product, bound, "float64")
    if numbers and not told.right:
        text = (
            f"{told.outside:,} of {told.elements:,} elements differ from float64: the largest error is "
            f"{told.worst:.3g}, where rounding may cause {told.allowed:.3g}"
        )
        return Complaint(text, precise=False)
    if precision and case.statistical and product.size >= _ENOUGH:
        return _imprecise(made, product, depth)
    return None


def _imprecise(made: Exact, product: Exact, depth: int) -> Complaint | None:
    """Mean square and mean of the error, against those of the exact result rounded once."""
    error = made - product
    once = product.astype(bfloat16).astype(np.float64) - product
    summed = depth**0.5 * F32_ROUNDING * _rms(product)
    allowed = _SLACK * _rms(once) + _SIGMAS * summed
    if not _rms(error) <= allowed:
        text = f"the error is {_rms(error):.3g} in the mean square, of float32 sums rounded once {_rms(once):.3g}"
        return Complaint(text, precise=True)
    drift = float(np.mean(error * np.sign(product)))
    drifting = _SIGMAS * _rms(once) / product.size**0.5 + depth * F32_ROUNDING * float(np.mean(np.abs(product)))
    if not abs(drift) <= drifting:
        text = f"results are off to one side by {drift:.3g}, which float32 sums are by {drifting:.3g} at most"
        return Complaint(text, precise=True)
    return None


def _rms(values: Exact) -> float:
    return float(np.sqrt(np.mean(values**2)))
