"""Differential test of a kernel in the interpreter against a float64 reference, on random inputs and unusual shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
from ml_dtypes import bfloat16

from argus.core.ir import Kernel
from argus.interp.search.search import assumed, holds
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Gemm, Problem
from argus.search.problems.references import find_difference
from argus.search.problems.traced import Traced, interpretable
from argus.verifier.api import interpret
from argus.verifier.reference import Comparison, bound_of_sums, compare, rounding_of

SEEDS = (0, 1)
REFERENCE = "float64"
TOLERANCE = (
    "of each element c of C: u |c| + (1 + u) e, where u = 2^-8 is the rounding of bfloat16, and e = K 2^-23 times the"
    " sum of |a| |b| bounds sums in float32 in any order"
)


_WHOLE = ((64, 64, 64), (128, 128, 128), (256, 256, 256), (128, 256, 512))
"""Shapes for kernels that only accept multiples of tiles."""


def small_shapes(kernel: Kernel, seed: int) -> tuple[tuple[int, int, int], ...]:
    """Small (M, N, K) that satisfy the kernel's assumptions, not multiples of tiles if such are admissible."""
    generator = np.random.default_rng(seed)
    odd = int(generator.integers(2, 140)), 8 * int(generator.integers(1, 18)), 8 * int(generator.integers(1, 40))
    return admissible(kernel, ((1, 8, 8), odd)) or admissible(kernel, _WHOLE)


def admissible(kernel: Kernel, extents: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """The extents (M, N, K) that satisfy the kernel's assumptions."""
    condition = assumed(kernel)
    return tuple(each for each in extents if holds(kernel, condition, dict(zip("MNK", each, strict=True))))


def too_large(problem: Problem, kernel: Traced) -> bool:
    """Whether the kernel admits no sizes that are small enough for the interpreter, as they are constants."""
    if isinstance(problem, Gemm):
        assert isinstance(kernel, Kernel)
        return not _shapes(problem, kernel, SEEDS[0])
    return not kernel.sizes and not interpretable(kernel, {})


def _shapes(problem: Gemm, kernel: Kernel, seed: int) -> tuple[tuple[int, int, int], ...]:
    """Shapes to run: small ones, or the problem's own for a kernel that admits no others, if it is small enough."""
    own = (problem.m, problem.n, problem.k)
    return small_shapes(kernel, seed) or (admissible(kernel, (own,)) if interpretable(kernel, problem.sizes) else ())


def disagreement(problem: Problem, kernel: Traced) -> str:
    """Describe where the interpreter differs from the float64 reference by more than rounding; empty if nowhere.

    Nothing is run of a kernel that is `too_large`. Raises ArgusError (E903) for an unusable reference of the user.
    """
    match problem:
        case Gemm():
            assert isinstance(kernel, Kernel)
            return _product_disagreement(problem, kernel)
        case FamilyProblem():
            return find_difference(problem.reference, kernel, SEEDS, problem.inputs_of(kernel.name))
        case KernelFile():
            return find_difference(problem.reference, kernel, SEEDS)
        case _:
            assert_never(problem)


def _product_disagreement(problem: Gemm, kernel: Kernel) -> str:
    for seed in SEEDS:
        for shape in _shapes(problem, kernel, seed):
            found = compare_product(kernel, shape, seed)
            if not found.right:
                extents = "x".join(map(str, shape))
                return (
                    f"{found.outside:,} of {found.elements:,} elements of C differ from float64 at {extents}, "
                    f"seed {seed}: "
                    f"the largest error is {found.worst:.3g}, where rounding may cause {found.allowed:.3g}"
                )
    return ""


def compare_product(kernel: Kernel, shape: tuple[int, int, int], seed: int) -> Comparison:
    """Run one product of normal numbers and compare with the error bound `TOLERANCE`."""
    m, n, k = shape
    generator = np.random.default_rng([seed, m, n, k])
    left = generator.standard_normal((m, k), np.float32).astype(bfloat16)
    right = generator.standard_normal((n, k), np.float32).astype(bfloat16)
    poisoned = np.full((m, n), np.nan, bfloat16)
    (made,) = interpret(kernel, left, right, poisoned, tags=False).values()
    exact = left.astype(np.float64) @ right.astype(np.float64).T
    sizes = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64)).T
    bound = bound_of_sums(exact, sizes, k, rounding_of(np.dtype(bfloat16)))
    return compare(made.astype(np.float64), exact, bound, REFERENCE)
