"""Reductions in parts compute what they do at once, and moments of parts those of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from argus.core import algebra
from argus.nests.evaluate import nest_value
from argus.nests.nest import Apply, Axis, Constant, Nest, Read, Reduce, ReduceOp, size
from argus.nests.partials import MOST_PARTIAL, in_parts, moments

N, C, S = (Axis(name, algebra.const(extent)) for name, extent in (("n", 3), ("c", 2), ("s", 1 << 15)))
X = Read("X", (N.index, C.index, S.index), "f32")


def values_of(nests: Sequence[Nest]) -> dict[str, Any]:
    """What each nest computes, after those before it."""
    rng = np.random.default_rng(7)
    known = {"X": rng.standard_normal((3, 2, 1 << 15)) + 3}
    for nest in nests:
        known[nest.output] = nest_value(nest, known, {})
    return known


WHOLE: dict[ReduceOp, Callable[..., Any]] = {"add": np.sum, "max": np.max, "min": np.min}


@pytest.mark.parametrize("op", WHOLE)
def test_parts_of_a_reduction_combine_to_all_of_it(op: ReduceOp) -> None:
    body = Apply("mul", (Reduce(op, (N, S), X), Constant(2.0)))
    nests = in_parts(Nest("Y", "f32", (C,), body), {})
    found = values_of(nests)
    assert [nest.output for nest in nests] == ["Y_parts", "Y"]
    assert found["Y_parts"].shape == (2, 3, 2)
    np.testing.assert_allclose(found["Y"], 2 * WHOLE[op](found["X"], axis=(0, 2)), rtol=1e-12)


def test_moments_of_parts_are_those_of_all() -> None:
    found = values_of(moments("m", X, (C,), (N, S), {}))
    np.testing.assert_allclose(found["m_mean"], found["X"].mean(axis=(0, 2)), rtol=1e-12)
    np.testing.assert_allclose(found["m_var"], found["X"].var(axis=(0, 2)), rtol=1e-12)
    assert found["m_squares"].shape == (2, 3, 2)


def test_what_has_many_results_or_few_elements_is_reduced_at_once() -> None:
    many = Axis("m", algebra.const(1 << 12))
    nest = Nest("Y", "f32", (many, C), Reduce("add", (S,), Read("Z", (many.index, C.index, S.index), "f32")))
    assert in_parts(nest, {}) == (nest,)
    few = Nest("Y", "f32", (N,), Reduce("add", (C,), Read("Z", (N.index, C.index), "f32")))
    assert in_parts(few, {}) == (few,)


def test_more_partial_results_than_memory_is_made_for_are_not_kept() -> None:
    wide, deep = Axis("w", size("K")), Axis("d", algebra.const(64))
    nest = Nest("Y", "f32", (wide,), Reduce("add", (deep, N), Read("Z", (wide.index, deep.index, N.index), "f32")))
    assert len(in_parts(nest, {"K": MOST_PARTIAL // 64}, always=True)) == 2
    assert in_parts(nest, {"K": MOST_PARTIAL // 64 + 1}, always=True) == (nest,)


@pytest.mark.parametrize(("length", "nests"), [(1 << 18, 2), (1 << 20, 4)])
def test_moments_of_rows_that_a_cluster_holds_have_no_parts(length: int, nests: int) -> None:
    row, outer, inner = (Axis(name, algebra.const(n)) for name, n in (("r", 3), ("h", length >> 9), ("w", 512)))
    x = Read("x", (row.index, outer.index, inner.index), "f32")
    assert len(moments("m", x, (row,), (outer, inner), {}, whole=True)) == nests
    assert len(moments("m", x, (row,), (outer, inner), {})) == 4


@pytest.mark.share(3)
def test_few_long_columns_have_parts_whose_elements_are_neighbours() -> None:
    rows, columns = Axis("r", algebra.const(8192)), Axis("k", algebra.const(2048))
    along = Read("X", (rows.index, columns.index), "f32")
    partial, whole = in_parts(Nest("Y", "f32", (columns,), Reduce("add", (rows,), along)), {})
    assert [axis.extent for axis in partial.domain] == [algebra.const(32), columns.extent]
    assert whole.domain == (columns,)
    x = np.random.default_rng(3).standard_normal((8192, 2048))
    parts = nest_value(partial, {"X": x}, {})
    np.testing.assert_allclose(nest_value(whole, {"Y_parts": parts}, {})[:8], x.sum(0)[:8], rtol=1e-9, atol=1e-9)
    # Rows of a matrix have a block each, and as many columns keep a GPU busy by themselves.
    across = Nest("Y", "f32", (columns,), Reduce("add", (rows,), Read("X", (columns.index, rows.index), "f32")))
    many = Axis("k", algebra.const(1 << 15))
    wide = Nest("Y", "f32", (many,), Reduce("add", (rows,), Read("X", (rows.index, many.index), "f32")))
    assert in_parts(across, {}) == (across,)
    assert in_parts(wide, {}) == (wide,)
