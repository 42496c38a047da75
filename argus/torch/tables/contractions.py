"""Products of matrices of aten: sums over an axis of products of elements."""

from __future__ import annotations

from math import prod

from argus.core.index import Const, Index
from argus.nests.nest import Expr, Reduce
from argus.nests.simplify import apply, summed
from argus.torch.choice_of_products import FEW, LARGE
from argus.torch.products import OPERATORS
from argus.torch.tables.pointwise import FLOATS
from argus.torch.tables.table import Context, constant, lowers
from argus.torch.values import Indices, Value, broadcast


def _product(cx: Context, one: object, other: object, shape: tuple[Index, ...]) -> Value:
    """Matrices, in batches if they have three axes. A product with a diagonal matrix has no sum, and is pointwise."""
    plain = _sum_of_products(cx, cx.value(one), cx.value(other), shape)
    if not isinstance(plain.at([cx.axis(extent).index for extent in shape]), Reduce):
        return plain
    if _is_large(cx, one, shape) and not _is_worked_on(cx, one, other, shape):
        return cx.called(OPERATORS.matmul.default, one, other)
    return cx.stored(_sum_of_products(cx, cx.operand(one), cx.operand(other), shape))


def _is_worked_on(cx: Context, one: object, other: object, shape: tuple[Index, ...]) -> bool:
    """Whether a template computes what becomes of its sums; the operator copies operands that are not dense."""
    dense = all(cx.is_dense(each, turned=True) for each in (one, other))
    return dense and not any(isinstance(each, Const) and each.value < FEW for each in shape[-2:])


def _is_large(cx: Context, one: object, shape: tuple[Index, ...]) -> bool:
    """Whether the operator's kernels, which use matrix units, are to compute it."""
    value = cx.value(one)
    sizes = [each.value if isinstance(each, Const) else LARGE for each in (*shape, value.shape[-1])]
    return value.dtype in FLOATS and cx.value(one).dtype == cx.dtype and prod(sizes) >= LARGE


def _sum_of_products(cx: Context, a: Value, b: Value, shape: tuple[Index, ...]) -> Value:
    def element(index: Indices) -> Expr:
        *batch, row, column = index
        axis = cx.axis(a.shape[-1])
        terms = apply("mul", a.at([*batch, row, axis.index]), b.at([*batch, axis.index, column]))
        return summed((axis,), terms)

    return Value(shape, cx.dtype, element)


@lowers("mm", "bmm")
def _mm(cx: Context, a: object, b: object, *_: object) -> Value:
    return _product(cx, a, b, cx.shape)


@lowers("addmm", "baddbmm")
def _addmm(cx: Context, bias: object, a: object, b: object, *, beta: float = 1, alpha: float = 1) -> Value:
    product, rank = _product(cx, a, b, cx.shape), len(cx.shape)
    added = broadcast(cx.value(bias), rank)

    def element(index: Indices) -> Expr:
        scaled = apply("mul", product.at(index), constant(alpha))
        if beta == 0:  # what is not finite counts as zero, too
            return scaled
        return apply("add", scaled, apply("mul", added(index), constant(beta)))

    return Value(cx.shape, cx.dtype, element)


@lowers("mv")
def _mv(cx: Context, a: object, b: object) -> Value:
    matrix, vector = cx.value(a), cx.value(b)

    def element(index: Indices) -> Expr:
        axis = cx.axis(vector.shape[0])
        return summed((axis,), apply("mul", matrix.at([index[0], axis.index]), vector.at([axis.index])))

    return cx.stored(Value(cx.shape, cx.dtype, element))


@lowers("dot")
def _dot(cx: Context, a: object, b: object) -> Value:
    one, other = cx.value(a), cx.value(b)

    def element(_: Indices) -> Expr:
        axis = cx.axis(one.shape[0])
        return summed((axis,), apply("mul", one.at([axis.index]), other.at([axis.index])))

    return cx.stored(Value(cx.shape, cx.dtype, element))
