"""Checks outputs: element by element against error bounds, and by error statistics that only full precision satisfies.

For normal numbers, f32 accumulation adds little to the error of the final rounding, whose mean square follows from the
exact result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.search.bench_harness.subject import Mismatch
from argus.verifier.reference import F32_ROUNDING, Exact, compare

Places = npt.NDArray[np.int64]
_SLACK = 1.15
"""Largest ratio of the RMS error to that of one rounding; double rounding has a ratio of at least 1.3."""
LEAST_SAMPLES = 2048
"""Least number of elements for statistics."""
SIGMAS = 6.0


def sample_indices(places: int, affordable: int, generator: np.random.Generator) -> Places:
    """All indices if affordable, else one random index per interval, plus the first and the last."""
    affordable = max(4, affordable)
    if places <= affordable:
        return np.arange(places, dtype=np.int64)
    edges: list[int] = np.linspace(0, places, affordable - 1).astype(np.int64).tolist()
    drawn = [int(generator.integers(low, high)) for low, high in pairwise(edges)]
    return np.array(sorted({0, places - 1, *drawn}), np.int64)


def sample_rows_and_columns(
    rows: int, columns: int, products: int, generator: np.random.Generator, most_products: int
) -> tuple[Places, Places]:
    """Sample rows and columns whose intersections are checked. products: multiply-adds per element.

    Samples both axes in the same proportion: this needs few rows and columns of the operands, and hits a wrong tile
    more likely than fewer whole rows would.
    """
    kept = (most_products / max(1, rows * columns * products)) ** 0.5
    chosen = [sample_indices(each, int(each * kept), generator) for each in (rows, columns)]
    return chosen[0], chosen[1]


def compare_elements(made: Exact, expected: Exact, bound: Exact, with_what: str, of: str = "") -> Mismatch | None:
    """Find elements whose error exceeds a bound. of: name of the output, if there are several."""
    comparison = compare(made, expected, bound, with_what)
    if comparison.right:
        return None
    return Mismatch(
        f"{comparison.outside:,} of {comparison.elements:,} elements{of and f' of {of}'} differ from {with_what}: the"
        f" largest error is {comparison.worst:.3g}, where rounding may cause {comparison.allowed:.3g}",
        precise=False,
    )


def check_precision(made: Exact, exact: Exact, dtype: np.dtype[Any], depth: int) -> Mismatch | None:
    """Compare RMS and mean of the error with those of the exact result rounded once to a type.

    depth: length of the f32 sums.
    """
    if exact.size < LEAST_SAMPLES:
        return None
    error = made - exact
    once = exact.astype(dtype).astype(np.float64) - exact
    summed = depth**0.5 * F32_ROUNDING * rms(exact)
    allowed = _SLACK * rms(once) + SIGMAS * summed
    if not rms(error) <= allowed:
        text = f"the RMS error is {rms(error):.3g}, that of float32 sums rounded once is {rms(once):.3g}"
        return Mismatch(text, precise=True)
    drift = float(np.mean(error * np.sign(exact)))
    drifting = SIGMAS * rms(once) / exact.size**0.5 + depth * F32_ROUNDING * float(np.mean(np.abs(exact)))
    if not abs(drift) <= drifting:
        text = f"results have a bias of {drift:.3g}, that of float32 sums is at most {drifting:.3g}"
        return Mismatch(text, precise=True)
    return None


def rms(values: Exact) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))
