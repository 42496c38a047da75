"""Property: a proved kernel has no violation and computes C = A B^T under every schedule, at every size.

The outputs must be within the error bound of fp32 sums in any order.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.interp.interpret import interpret
from argus.interp.run import run
from argus.interp.search.schedule import Schedule
from argus.interp.search.search import assumed, holds
from property_tests.depth import examples
from property_tests.programs import KERNELS, products, within_bound

Array = npt.NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
ORDERS = st.sampled_from(["random", "lowest", "highest", "round_robin"])
SCHEDULES = st.builds(Schedule, st.sampled_from(["early", "late", "mixed"]), st.integers(0, 1 << 16), ORDERS)
NAMES = st.deferred(lambda: st.sampled_from(sorted(products())))


def extents(tile: int) -> st.SearchStrategy[int]:
    """Sizes of up to a few tiles, half of them close to a multiple of a tile."""
    near = st.sampled_from([1, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile, 2 * tile + 1])
    return near | st.integers(1, 2 * tile + 2)


def sizes_of(name: str, data: st.DataObject) -> dict[str, int]:
    """Sizes that satisfy the kernel's assumptions, rounded up to the required multiples."""
    kernel = KERNELS[name]
    assumption = assumed(kernel)
    drawn = {"M": data.draw(extents(64)), "N": data.draw(extents(64)), "K": 8 * data.draw(st.integers(1, 18))}
    for unit in (1, 4, 8, 32, 64, 128, 512):
        rounded = {size: -(-value // unit) * unit for size, value in drawn.items()}
        if holds(kernel, assumption, rounded):
            return rounded
    least = {"M": 64, "N": 64, "K": 32}  # some take a single tile of K, of 32
    return least if holds(kernel, assumption, least) else {"M": 64, "N": 64, "K": 64}


def matrix(rows: int, columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(BF16)


@pytest.mark.share(3)
@settings(max_examples=examples(30))
@given(name=NAMES, schedule=SCHEDULES, data=st.data())
def test_every_schedule_gives_the_same_numbers(name: str, schedule: Schedule, data: st.DataObject) -> None:
    kernel, sizes = KERNELS[name], sizes_of(name, data)
    a, b = matrix(sizes["M"], sizes["K"], 1), matrix(sizes["N"], sizes["K"], 2)
    expected = interpret(
        kernel, a, b, np.empty((sizes["M"], sizes["N"]), BF16), schedule=Schedule("early", 0, "lowest")
    )
    outcome = run(kernel, sizes, {"A": a, "B": b}, schedule)
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["C"], expected["C"])
    assert within_bound(a, b, outcome.arrays["C"])
