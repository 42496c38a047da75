"""Products of matrices of aten: sums over an axis of products of elements."""

from __future__ import annotations

from argus.core.index import Index
from argus.nests.nest import Constant, Expr, Reduce
from argus.nests.simplify import apply, summed
from argus.torch.tables.table import Context, lowers
from argus.torch.values import Indices, Value, broadcast


def _product(cx: Context, one: object, other: object, shape: tuple[Index, ...]) -> Value:
    """Matrices, in batches if they have three axes. A product with a diagonal matrix has no sum, and is pointwise."""
    plain = _sum_of_products(cx, cx.value(one), cx.value(other), shape)
    if not isinstance(plain.at([cx.axis(extent).index for extent in shape]), Reduce):
        return plain
    return cx.stored(_sum_of_products(cx, cx.operand(one), cx.operand(other), shape))


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
        scaled = apply("mul", product.at(index), Constant(float(alpha)))
        return apply("add", scaled, apply("mul", added(index), Constant(float(beta))))

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
