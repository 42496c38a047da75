"""Reductions and prefix sums of aten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from argus.core import algebra
from argus.core.index import Index
from argus.nests.affine import product_of
from argus.nests.nest import Constant, Expr, Reduce, ReduceOp
from argus.nests.partials import moments
from argus.nests.simplify import apply, as_test, coordinate, summed, truth
from argus.torch.tables.pointwise import FLOATS
from argus.torch.tables.table import Context, NotCovered, lowers
from argus.torch.values import Indices, Value

Dims = Sequence[int] | int | None


def reduced(
    cx: Context,
    op: ReduceOp,
    value: Value,
    dims: Dims,
    keep: bool,
    dtype: str,
    term: Callable[[Expr], Expr] | None = None,
) -> Value:
    """The elements, or a term of each, combined over some axes (None or empty: all); kept as axes of one element."""
    rank = len(value.shape)
    over = _axes(dims, rank)
    kept = [axis for axis in range(rank) if axis not in over]
    one = algebra.const(1)
    shape = tuple(one if axis in over else value.shape[axis] for axis in range(rank) if keep or axis not in over)

    def element(index: Indices) -> Expr:
        own = dict(zip(range(rank) if keep else kept, index, strict=True))
        axes = {axis: cx.axis(value.shape[axis]) for axis in over if value.shape[axis] is not one}
        own |= {axis: algebra.const(0) for axis in over}
        found = value.at([axes[axis].index if axis in axes else own[axis] for axis in range(rank)])
        body = found if term is None else term(found)
        if not axes:
            return body
        return summed(tuple(axes.values()), body) if op == "add" else Reduce(op, tuple(axes.values()), body)

    return cx.stored(Value(shape, dtype, element))


def _axes(dims: Dims, rank: int) -> list[int]:
    if dims is None or dims == []:
        return list(range(rank))
    return sorted({each % rank for each in ([dims] if isinstance(dims, int) else dims)}) if rank else []


def _count(value: Value, dims: Dims) -> Index:
    return product_of(value.shape[axis] for axis in _axes(dims, len(value.shape)))


def _scaled(value: Value, divisor: Index) -> Value:
    return Value(value.shape, value.dtype, lambda index: apply("div", value.at(index), coordinate(divisor)))


def _floats(cx: Context, x: object) -> Value:
    value = cx.value(x)
    if value.dtype not in FLOATS:
        raise NotCovered(f"`{cx.name}` of {value.dtype}")
    return value


def _ends(axes: Sequence[int]) -> tuple[int, int]:
    return (axes[0], axes[-1]) if axes else (0, 0)


@lowers("sum")
def _sum(cx: Context, x: object, dims: Dims = None, keep: bool = False, **_: object) -> Value:
    return reduced(cx, "add", _floats(cx, x), dims, keep, cx.dtype)


@lowers("mean")
def _mean(cx: Context, x: object, dims: Dims = None, keep: bool = False, **_: object) -> Value:
    value = _floats(cx, x)
    return _scaled(reduced(cx, "add", value, dims, keep, cx.dtype), _count(value, dims))


@lowers("prod")
def _prod(cx: Context, x: object, dims: Dims = None, keep: bool = False, **_: object) -> Value:
    return reduced(cx, "mul", _floats(cx, x), dims, keep, cx.dtype)


@lowers("amax", "amin")
def _amax(cx: Context, x: object, dims: Dims = None, keep: bool = False) -> Value:
    return reduced(cx, cast(ReduceOp, cx.name[1:]), _floats(cx, x), dims, keep, cx.dtype)


@lowers("max", "min")
def _max(cx: Context, x: object, dim: int | None = None, keep: bool = False) -> Value | tuple[Value, Value]:
    value = _floats(cx, x)
    op = cast(ReduceOp, cx.name)
    found = reduced(cx, op, value, dim, keep, cx.dtype)
    if dim is None:
        return found
    arg = cast(ReduceOp, f"arg{cx.name}")
    return found, reduced(cx, arg, value, dim, keep, cx.results()[1][1])


@lowers("argmax", "argmin")
def _argmax(cx: Context, x: object, dim: int | None = None, keep: bool = False) -> Value:
    value = _floats(cx, x)
    if dim is None and len(value.shape) != 1:
        raise NotCovered(f"`{cx.name}` over several axes")
    return reduced(cx, cast(ReduceOp, cx.name), value, dim, keep, cx.dtype)


@lowers("any", "all")
def _any(cx: Context, x: object, dims: Dims = None, keep: bool = False) -> Value:
    op: ReduceOp = "max" if cx.name == "any" else "min"
    return reduced(cx, op, cx.value(x), dims, keep, cx.dtype, lambda v: truth(as_test(v)))


@lowers("var", "var_mean", "std")
def _var(
    cx: Context,
    x: object,
    dims: Dims = None,
    unbiased: object = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value | tuple[Value, Value]:
    """The mean of squared deviations from the mean."""
    value = _floats(cx, x)
    if isinstance(dims, bool):
        dims, unbiased = None, dims
    fewer = (1.0 if unbiased in (None, True) else 0.0) if correction is None else correction
    rank = len(value.shape)
    over = _axes(dims, rank)
    axes = [cx.axis(extent) for extent in value.shape]
    one = algebra.const(1)
    kept = tuple(axes[k] for k in range(rank) if k not in over)
    several = any(value.shape[k] is not one for k in over)
    reduced_axes = tuple(axes[k] for k in over if value.shape[k] is not one or not several)
    name = cx.new_name()
    long = [k for k in over if value.shape[k] is not one]
    between = any(k not in over and value.shape[k] is not one for k in range(*_ends(long)))
    zero = algebra.const(0)
    places = [axis.index if axis in (*kept, *reduced_axes) else zero for axis in axes]
    made = moments(name, value.at(places), kept, reduced_axes, {}, always=between, whole=cx.whole)
    held = {nest.output: cx.emitted(nest) for nest in made}
    count = coordinate(_count(value, dims))
    factor = Constant(1.0) if fewer == 0 else apply("div", count, apply("sub", count, Constant(float(fewer))))

    def of_kept(index: Indices) -> Indices:
        return tuple(place for k, place in enumerate(index) if k not in over) if keepdim else index

    def variance(index: Indices) -> Expr:
        found = apply("mul", held[f"{name}_var"].at(of_kept(index)), factor)
        return apply("sqrt", found) if cx.name == "std" else found

    shape = cx.shape
    result = Value(shape, cx.dtype, variance)
    if cx.name != "var_mean":
        return result
    return result, Value(shape, cx.dtype, lambda index: held[f"{name}_mean"].at(of_kept(index)))


@lowers("linalg_vector_norm")
def _norm(cx: Context, x: object, order: float = 2, dims: Dims = None, keep: bool = False, **_: object) -> Value:
    value = _floats(cx, x)
    if order == 2:
        squares = reduced(cx, "add", value, dims, keep, cx.dtype, lambda v: apply("mul", v, v))
        return Value(squares.shape, squares.dtype, lambda index: apply("sqrt", squares.at(index)))
    if order == 1:
        return reduced(cx, "add", value, dims, keep, cx.dtype, lambda v: apply("abs", v))
    if order == float("inf"):
        return reduced(cx, "max", value, dims, keep, cx.dtype, lambda v: apply("abs", v))
    raise NotCovered(f"a norm of order {order}")


@lowers("cumsum", "cumprod")
def _cumulative(cx: Context, x: object, dim: int, **_: object) -> Value:
    value = _floats(cx, x)
    axis = dim % len(value.shape)

    def element(index: Indices) -> Expr:
        place = cx.axis(algebra.add(index[axis], 1))
        body = value.at([*index[:axis], place.index, *index[axis + 1 :]])
        return Reduce("add" if cx.name == "cumsum" else "mul", (place,), body)

    return cx.stored(Value(cx.shape, cx.dtype, element))
