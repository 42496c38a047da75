"""Whether a kernel computes what is asked for, in the interpreter: fresh inputs, shapes that nobody tuned for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np
from ml_dtypes import bfloat16

from argus.api import interpret
from argus.core.ir import Kernel
from argus.optimizer.files import KernelFile
from argus.optimizer.problem import Gemm, Problem
from argus.optimizer.references import differs
from argus.reference import F32_ROUNDING, Comparison, compared

_ROUNDING = 2.0**-8
"""Of a number of bfloat16."""
SEEDS = (0, 1)
REFERENCE = "float64"
TOLERANCE = (
    "of each element c of C: u |c| + (1 + u) e, where u = 2^-8 is the rounding of bfloat16, and e = K 2^-23 times the"
    " sum of |a| |b| bounds sums in float32 in any order"
)


def shapes(seed: int) -> Iterator[tuple[int, int, int]]:
    """Small extents, no multiples of tiles: rows of 16 bytes are all that is asked of an operand."""
    yield 1, 8, 8
    generator = np.random.default_rng(seed)
    yield int(generator.integers(2, 140)), 8 * int(generator.integers(1, 18)), 8 * int(generator.integers(1, 40))


def disagreement(problem: Problem, kernel: Kernel) -> str:
    """Where the interpreter's result and the float64 reference differ by more than rounding; empty if nowhere.

    Raises ArgusError (E903) for a user's reference that does not serve.
    """
    match problem:
        case Gemm():
            return _of_product(kernel)
        case KernelFile():
            return differs(problem, kernel, SEEDS)
        case _:
            assert_never(problem)


def _of_product(kernel: Kernel) -> str:
    for seed in SEEDS:
        for shape in shapes(seed):
            found = multiplied(kernel, shape, seed)
            if not found.right:
                extents = "x".join(map(str, shape))
                return (
                    f"{found.outside:,} of {found.elements:,} elements of C differ from float64 at {extents}, "
                    f"seed {seed}: "
                    f"the largest error is {found.worst:.3g}, where rounding may cause {found.allowed:.3g}"
                )
    return ""


def multiplied(kernel: Kernel, shape: tuple[int, int, int], seed: int) -> Comparison:
    """One product of normal numbers, run and compared: u |c| + (1 + u) e, e of float32 sums in any order."""
    m, n, k = shape
    generator = np.random.default_rng([seed, m, n, k])
    left = generator.standard_normal((m, k), np.float32).astype(bfloat16)
    right = generator.standard_normal((n, k), np.float32).astype(bfloat16)
    poisoned = np.full((m, n), np.nan, bfloat16)
    (made,) = interpret(kernel, left, right, poisoned).values()
    exact = left.astype(np.float64) @ right.astype(np.float64).T
    sizes = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64)).T
    bound = _ROUNDING * np.abs(exact) + (1 + _ROUNDING) * k * F32_ROUNDING * sizes
    return compared(made.astype(np.float64), exact, bound, REFERENCE)
