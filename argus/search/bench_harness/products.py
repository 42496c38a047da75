"""The test subject of a GEMM: C = A @ B^T compared with float64, element by element and by error statistics.

The error of a sum of k products in f32, rounded once to bfloat16, is at most u |c| + (1 + u) e with
e = k 2^-23 sum |a b| and u = 2^-8. For large k this worst-case bound does not detect lower precision: e grows as k^2,
the error of bfloat16 sums only as k. The mean square error does (`outputs.check_precision`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen
from ml_dtypes import bfloat16

from argus.policy.bounds import Bounds
from argus.search.bench_harness.inputs import Array, Case, RandomInputs, Sizes, adversarial, normal_arrays
from argus.search.bench_harness.outputs import Places, check_precision, compare_elements, sample_rows_and_columns
from argus.search.bench_harness.subject import CheckScope, Mismatch, Tensor
from argus.search.problems.problem import Gemm
from argus.verifier.reference import Exact, bound_of_sums, rounding_of

Shape = tuple[int, int, int]
_TYPE = np.dtype(bfloat16)
TENSORS = (
    Tensor("A", _TYPE, read=True, written=False),
    Tensor("B", _TYPE, read=True, written=False),
    Tensor("C", _TYPE, read=False, written=True),
)
HOSTILE = (67, 72, 136)
"""Extents of adversarial inputs."""


@frozen
class Product:
    """The subject of a GEMM problem."""

    problem: Gemm

    @property
    def sizes(self) -> Sizes:
        return self.problem.sizes

    @property
    def bounds(self) -> Bounds:
        return self.problem.bounds

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return TENSORS

    def shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        return tuple((sizes[one], sizes[other]) for one, other in ("MK", "NK", "MN"))

    def normal(self, draws: RandomInputs, sizes: Sizes) -> Case:
        left, right = draws.normal(_shapes(_extents(sizes)))
        return Case(sizes, {"A": left, "B": right}, statistical=True)

    def unseen(self, draws: RandomInputs, count: int) -> list[Sizes]:
        """The smallest shape, and some that are not multiples of tiles; operand rows are multiples of 16 bytes."""
        found = [_sizes((1, 8, 8))]
        for _ in range(count):
            generator = draws.generator()
            m, n, k = generator.integers(2, 300), generator.integers(1, 36), generator.integers(1, 40)
            found.append(_sizes((2 * int(m) + 1, 8 * int(n), 8 * int(k))))
        return found

    def adversarial(self, draws: RandomInputs, sizes: Sizes | None) -> Mapping[str, Case]:
        chosen = _sizes(HOSTILE) if sizes is None else sizes
        shapes = dict(zip("AB", _shapes(_extents(chosen)), strict=True))
        return dict(adversarial(draws, shapes, chosen, ["A"]))

    def expected(self, case: Case) -> Mapping[str, Array]:
        product, _ = exact_product(case, *(np.arange(case.sizes[name], dtype=np.int64) for name in "MN"))
        return {"C": product.astype(bfloat16)}

    def compare(
        self, case: Case, found: Mapping[str, Array], generator: np.random.Generator, looked: CheckScope
    ) -> Mismatch | None:
        m, n, k = _extents(case.sizes)
        rows, columns = sample_rows_and_columns(m, n, k, generator, looked.most_products)
        product, sums = exact_product(case, rows, columns)
        made = found["C"][np.ix_(rows, columns)].astype(np.float64)
        bound = bound_of_sums(product, sums, k, rounding_of(_TYPE))
        mismatch = compare_elements(made, product, bound, "float64") if looked.numbers else None
        if mismatch is None and looked.precision and case.statistical:
            return check_precision(made, product, _TYPE, k)
        return mismatch


def random_operands(generator: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Operands A and B of independently drawn normal numbers."""
    left, right = normal_arrays(generator, _shapes(shape))
    return left, right


def exact_product(case: Case, rows: Places, columns: Places) -> tuple[Exact, Exact]:
    """A @ B^T and |A| @ |B|^T in float64 at these rows and columns."""
    left, right = (case.arrays[name][chosen].astype(np.float64) for name, chosen in (("A", rows), ("B", columns)))
    return left @ right.T, np.abs(left) @ np.abs(right).T


def _extents(sizes: Sizes) -> Shape:
    return sizes["M"], sizes["N"], sizes["K"]


def _sizes(shape: Shape) -> Sizes:
    return dict(zip("MNK", shape, strict=True))


def _shapes(shape: Shape) -> list[tuple[tuple[int, ...], np.dtype[np.generic]]]:
    m, n, k = shape
    return [((m, k), _TYPE), ((n, k), _TYPE)]
