"""float64 references for a kernel's outputs, derived from its claims, with error bounds for rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.index import Const, Coord, Index
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Atomic,
    Buffer,
    Cast,
    Copy,
    Covers,
    Elem,
    Fold,
    Get,
    Kernel,
    Let,
    Lit,
    Map,
    Tag,
    View,
    WrittenOnce,
    axes_of,
    walk,
)

Array = npt.NDArray[Any]
Exact = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

F32_ROUNDING = 2.0**-23
"""Relative error bound of one fp32 addition, including matrix units that truncate."""


MOST_PRODUCTS = 1 << 32
"""The most products that the float64 reference computes; of larger outputs only some rows are compared."""
_ROUNDINGS = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4}
"""Largest relative error of rounding to a type; integers are exact."""
_SUBNORMAL_ROUNDINGS = {"float16": 2.0**-25, "float8_e4m3fn": 2.0**-10}
"""Largest error of rounding below a type's normal numbers, where it has few exponents."""
INTERPRETED = 8
"""Allowed difference between GPU and interpreter, in roundings of the output's type at its largest element."""


@frozen
class Comparison:
    """The result of comparing outputs with a reference.

    with_what: the reference. elements: how many were compared. worst: the largest absolute error; allowed: the bound
    at that element; share: the largest ratio of error to bound. outside: how many elements exceed their bound.
    """

    with_what: str
    elements: int
    worst: float
    allowed: float
    share: float
    outside: int

    @property
    def right(self) -> bool:
        return self.outside == 0


def compare(found: Exact, expected: Exact, bound: Exact, with_what: str) -> Comparison:
    """Compares elementwise; a NaN where a number is expected has infinite error, and equal infinities agree."""
    with np.errstate(invalid="ignore"):
        error = np.where(found == expected, 0.0, np.abs(found - expected))
    error = np.where(np.isnan(error), np.where(np.isnan(found) & np.isnan(expected), 0.0, np.inf), error)
    if error.size == 0:
        return Comparison(with_what, 0, 0.0, 0.0, 0.0, 0)
    at = int(error.argmax())
    shares = np.divide(error, bound, out=np.where(error > 0, np.inf, 0.0), where=bound > 0)
    outside = int(np.count_nonzero(error > bound))
    return Comparison(with_what, error.size, float(error.flat[at]), float(bound.flat[at]), float(shares.max()), outside)


@frozen
class Contraction:
    """output[m, n] = sum over k of left[m, k] * right[n, k]; `equation` is in einsum notation, with the axes' order.

    There may be batch axes (z, y, x), of the output and of either factor or both.
    """

    left: Buffer
    right: Buffer
    output: Buffer
    equation: str

    @property
    def rounding(self) -> float:
        """Largest relative error of rounding to the output's type."""
        return rounding_of(self.output.dtype.numpy)

    def rows(self, arrays: Mapping[str, Array], most_products: int, seed: int) -> Rows:
        """Rows of the output to compare, sorted: all, or as many as `most_products` allows, with the first and last."""
        rows, depth = (arrays[self.left.name].shape[self.equation.index(axis)] for axis in "mk")
        columns = arrays[self.right.name].size // max(1, depth)
        affordable = max(2, most_products // max(1, columns * depth))
        if rows <= affordable:
            return np.arange(rows, dtype=np.int64)
        drawn = np.random.default_rng(seed).choice(rows - 2, affordable - 2, replace=False) + 1
        return np.sort(np.array([0, *drawn.tolist(), rows - 1], np.int64))

    def exact(self, arrays: Mapping[str, Array], rows: Rows) -> tuple[Exact, Exact]:
        """Those rows of the result, and the error bound of each element."""
        left = arrays[self.left.name].take(rows, self.equation.index("m")).astype(np.float64)
        right = arrays[self.right.name].astype(np.float64)
        result: Exact = np.einsum(self.equation, left, right, optimize=True)
        sizes: Exact = np.einsum(self.equation, np.abs(left), np.abs(right), optimize=True)
        return result, bound_of_sums(result, sizes, self.depth(arrays), self.rounding)

    def depth(self, arrays: Mapping[str, Array]) -> int:
        """How many products an element of the result sums."""
        return arrays[self.left.name].shape[self.equation.index("k")]

    @property
    def row_axis(self) -> int:
        """The axis of the output's rows."""
        return self.equation.partition("->")[2].index("m")

    def what(self, compared: int, rows: int) -> str:
        """The reference in words. compared: how many of the output's rows are compared."""
        summed = show(self.left.shape[self.equation.index("k")])
        text = f"the sum over {summed} of {self.left.name} * {self.right.name} in float64"
        return text if compared == rows else f"{text}, {compared} of {rows:,} rows"


def bound_of_sums(result: Exact, sizes: Exact, depth: int, rounding: float) -> Exact:
    """The error bound u |c| + (1 + u) e of each element c of a matrix product.

    e bounds the error of fp32 sums of the exact products in any order; u is the rounding of the output's type.
    sizes: the sums of the products' absolute values. depth: the products in a sum.
    """
    return rounding * np.abs(result) + (1 + rounding) * depth * F32_ROUNDING * sizes


def compare_with_claims(
    claimed: Contraction, arrays: Mapping[str, Array], output: Array, seed: int, most: int = MOST_PRODUCTS
) -> Comparison:
    """Compares the output with the contraction in float64; some rows of a large output. arrays: the inputs by name."""
    rows = claimed.rows(arrays, most, seed)
    expected, bound = claimed.exact(arrays, rows)
    found, all_rows = output.take(rows, claimed.row_axis), output.shape[claimed.row_axis]
    return compare(found.astype(np.float64), expected, bound, claimed.what(len(rows), all_rows))


def compare_with_interpreter(found: Mapping[str, Array], interpreted: Mapping[str, Array]) -> Comparison:
    """Compares all outputs with the interpreter's, each within `interpreted_bound`."""
    made = np.concatenate([found[name].astype(np.float64).reshape(-1) for name in interpreted])
    expected = np.concatenate([array.astype(np.float64).reshape(-1) for array in interpreted.values()])
    bound = np.concatenate([interpreted_bound(array).reshape(-1) for array in interpreted.values()])
    return compare(made, expected, bound, "the interpreter")


def interpreted_bound(array: Array) -> Exact:
    """INTERPRETED roundings of the largest element of an output of the interpreter, for each of its elements."""
    exact = array.astype(np.float64)
    return np.full(exact.shape, INTERPRETED * rounding_of(array.dtype) * _largest(exact))


def _largest(array: Exact) -> float:
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def rounding_of(dtype: np.dtype[Any]) -> float:
    """Largest relative error of rounding to a type."""
    return _ROUNDINGS.get(dtype.name, 0.0)


def when_stored(exact: Exact, error: Exact, dtype: np.dtype[Any]) -> Exact:
    """The error bound of values within this error of exact ones, once they are rounded to a type."""
    return error + rounding_of(dtype) * (np.abs(exact) + error) + _SUBNORMAL_ROUNDINGS.get(dtype.name, 0.0)


def claimed_contraction(kernel: Kernel) -> Contraction | None:
    """The contraction that the kernel claims to compute; None unless its claims determine it completely.

    Required: two tensors tagged in their memory order that share one name which the output has not; claims that every
    sum covers all of that name's range, for all elements; one output, all of it written once with all other names, of
    which the last two are those of one factor each; and element-wise statements that only move and convert. A coverage
    claim on only some elements does not qualify: the sums of the others would be unconstrained.
    """
    body = tuple(walk(kernel.body))
    tags = [stmt for stmt in body if isinstance(stmt, Tag) and _in_order(stmt.view)]
    tagged = {tag.view.buffer: names for tag in tags if (names := _axes(tag.names, tag.view.shape))}
    claims = [s.claim for s in body if isinstance(s, Assert)]
    written = [claim for claim in claims if isinstance(claim, WrittenOnce)]
    covered = {(claim.of.name, claim.low, claim.high, claim.where) for claim in claims if isinstance(claim, Covers)}
    if len(tagged) != 2 or len(written) != 1 or len(covered) != 1 or not all(map(_plain, body)):
        return None
    if written[0].where is not TRUE or not _in_order(written[0].view):
        return None
    (left, a), (right, b) = tagged.items()
    names = _axes(written[0].record, written[0].view.shape)
    ((summed, low, high, where),) = covered
    output = written[0].view.buffer
    shared = set(a) & set(b)
    if (
        not names
        or summed not in shared
        or set(names) != (set(a) | set(b)) - {summed}
        or output not in kernel.parameters
    ):
        return None
    extents = {left.shape[a.index(name)] is right.shape[b.index(name)] for name in shared}
    if where is not TRUE or not _is_zero(low) or high is not left.shape[a.index(summed)] or extents != {True}:
        return None
    *batch, row, column = names
    if row in shared or column in shared or (row in a) == (column in a):
        return None
    if row in b:
        (left, a), (right, b) = (right, b), (left, a)
    letters = dict(zip((row, column, summed, *reversed(batch)), "mnkzyx", strict=False))
    spelled = ["".join(letters[name] for name in axes) for axes in (a, b, names)]
    return Contraction(left, right, output, f"{spelled[0]},{spelled[1]}->{spelled[2]}")


def _in_order(view: View) -> bool:
    """Whether a view is its whole tensor in memory order."""
    return axes_of(view) == tuple(range(len(view.shape)))


def _axes(record: tuple[tuple[str, Index], ...], shape: tuple[Index, ...]) -> tuple[str, ...]:
    """The names of two to five axes, where the record is exactly their coordinates; empty otherwise."""
    by_axis = {index.axis: name for name, index in record if isinstance(index, Coord)}
    axes = range(len(shape))
    if not _MATRIX <= len(shape) <= _MATRIX + _BATCHES or len(record) != len(axes) or by_axis.keys() != set(axes):
        return ()
    return tuple(by_axis[axis] for axis in axes)


_MATRIX, _BATCHES = 2, 3
"""The axes of a matrix, and the most batch axes."""


def _is_zero(index: Index) -> bool:
    return isinstance(index, Const) and index.value == 0


def _plain(stmt: object) -> bool:
    match stmt:
        case Map(elem=elem):
            return _moves(elem)
        case Copy(combine=combine):
            return combine is None
        case Fold() | Let(value=Atomic()):
            return False
        case _:
            return True


def _moves(elem: Elem) -> bool:
    match elem:
        case Get():
            return True
        case Lit(value=value):
            return value == 0
        case Cast(arg=arg):
            return _moves(arg)
        case _:
            return False
