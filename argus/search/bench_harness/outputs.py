"""Whether outputs are what they should be: element by element, and by the statistics that only full precision has.

Of normal numbers a sum in float32 adds little to the error of the last rounding, whose mean square is known since the
exact result is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.search.bench_harness.subject import Mismatch
from argus.verifier.reference import F32_ROUNDING, Exact, compared

Places = npt.NDArray[np.int64]
_SLACK = 1.15
"""Root mean square of the error over that of one rounding, at most: two roundings in a row have 1.3 or more."""
LEAST_SAMPLES = 2048
"""Elements of which statistics are taken."""
SIGMAS = 6.0


def sample_indices(places: int, affordable: int, generator: np.random.Generator) -> Places:
    """All, or one at random of each band; the first and the last among them."""
    affordable = max(4, affordable)
    if places <= affordable:
        return np.arange(places, dtype=np.int64)
    edges: list[int] = np.linspace(0, places, affordable - 1).astype(np.int64).tolist()
    drawn = [int(generator.integers(low, high)) for low, high in pairwise(edges)]
    return np.array(sorted({0, places - 1, *drawn}), np.int64)


def sample_rows_and_columns(
    rows: int, columns: int, products: int, generator: np.random.Generator, most_products: int
) -> tuple[Places, Places]:
    """Rows and columns where the elements to look at meet. products: that one element takes.

    Of both alike: so the operands of few rows and columns are needed, and a wrong tile is met more likely than by
    whole rows, of which there would be fewer.
    """
    kept = (most_products / max(1, rows * columns * products)) ** 0.5
    chosen = [sample_indices(each, int(each * kept), generator) for each in (rows, columns)]
    return chosen[0], chosen[1]


def compare_elements(made: Exact, expected: Exact, bound: Exact, with_what: str, of: str = "") -> Mismatch | None:
    """Elements that are off by more than a bound. of: which output, where there are several."""
    told = compared(made, expected, bound, with_what)
    if told.right:
        return None
    return Mismatch(
        f"{told.outside:,} of {told.elements:,} elements{of and f' of {of}'} differ from {with_what}: the largest error"
        f" is {told.worst:.3g}, where rounding may cause {told.allowed:.3g}",
        precise=False,
    )


def check_precision(made: Exact, exact: Exact, dtype: np.dtype[Any], depth: int) -> Mismatch | None:
    """Mean square and mean of the error, against those of the exact result rounded once to a type.

    depth: of the sums in float32 that the result is made of.
    """
    if exact.size < LEAST_SAMPLES:
        return None
    error = made - exact
    once = exact.astype(dtype).astype(np.float64) - exact
    summed = depth**0.5 * F32_ROUNDING * rms(exact)
    allowed = _SLACK * rms(once) + SIGMAS * summed
    if not rms(error) <= allowed:
        text = f"the error is {rms(error):.3g} in the mean square, of float32 sums rounded once {rms(once):.3g}"
        return Mismatch(text, precise=True)
    drift = float(np.mean(error * np.sign(exact)))
    drifting = SIGMAS * rms(once) / exact.size**0.5 + depth * F32_ROUNDING * float(np.mean(np.abs(exact)))
    if not abs(drift) <= drifting:
        text = f"results are off to one side by {drift:.3g}, which float32 sums are by {drifting:.3g} at most"
        return Mismatch(text, precise=True)
    return None


def rms(values: Exact) -> float:
    return float(np.sqrt(np.mean(values**2)))
