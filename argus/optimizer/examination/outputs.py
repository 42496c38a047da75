"""Whether outputs are what they should be: element by element, and by the statistics that only full precision has.

Of normal numbers a sum in float32 adds little to the error of the last rounding, whose mean square is known since the
exact result is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.optimizer.examination.subject import Complaint
from argus.reference import F32_ROUNDING, Exact, compared

Rows = npt.NDArray[np.int64]
_SLACK = 1.15
"""Root mean square of the error over that of one rounding, at most: two roundings in a row have 1.3 or more."""
ENOUGH = 2048
"""Elements of which statistics are taken."""
SIGMAS = 6.0


def some_rows(rows: int, products: int, generator: np.random.Generator, most_products: int) -> Rows:
    """All, or one at random of each band; the first and the last among them. products: that one row takes."""
    affordable = max(4, most_products // max(1, products))
    if rows <= affordable:
        return np.arange(rows, dtype=np.int64)
    edges: list[int] = np.linspace(0, rows, affordable - 1).astype(np.int64).tolist()
    drawn = [int(generator.integers(low, high)) for low, high in pairwise(edges)]
    return np.array(sorted({0, rows - 1, *drawn}), np.int64)


def differ(made: Exact, expected: Exact, bound: Exact, with_what: str, of: str = "") -> Complaint | None:
    """Elements that are off by more than a bound. of: which output, where there are several."""
    told = compared(made, expected, bound, with_what)
    if told.right:
        return None
    return Complaint(
        f"{told.outside:,} of {told.elements:,} elements{of and f' of {of}'} differ from {with_what}: the largest error"
        f" is {told.worst:.3g}, where rounding may cause {told.allowed:.3g}",
        precise=False,
    )


def imprecise(made: Exact, exact: Exact, dtype: np.dtype[Any], depth: int) -> Complaint | None:
    """Mean square and mean of the error, against those of the exact result rounded once to a type.

    depth: of the sums in float32 that the result is made of.
    """
    if exact.size < ENOUGH:
        return None
    error = made - exact
    once = exact.astype(dtype).astype(np.float64) - exact
    summed = depth**0.5 * F32_ROUNDING * rms(exact)
    allowed = _SLACK * rms(once) + SIGMAS * summed
    if not rms(error) <= allowed:
        text = f"the error is {rms(error):.3g} in the mean square, of float32 sums rounded once {rms(once):.3g}"
        return Complaint(text, precise=True)
    drift = float(np.mean(error * np.sign(exact)))
    drifting = SIGMAS * rms(once) / exact.size**0.5 + depth * F32_ROUNDING * float(np.mean(np.abs(exact)))
    if not abs(drift) <= drifting:
        text = f"results are off to one side by {drift:.3g}, which float32 sums are by {drifting:.3g} at most"
        return Complaint(text, precise=True)
    return None


def rms(values: Exact) -> float:
    return float(np.sqrt(np.mean(values**2)))
