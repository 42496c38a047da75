"""Views and copies of aten, and tensors made from coordinates: they are index maps alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from argus.core import algebra
from argus.core.index import Const, Index
from argus.nests.affine import reshaped, split
from argus.nests.nest import Constant, Expr, Inside, Read
from argus.nests.rewrite import with_reads
from argus.nests.simplify import coordinate, select
from argus.torch.tables.table import Context, NotCovered, constant, lowers
from argus.torch.values import Indices, Value, broadcast


@lowers("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "view_copy", "flatten", "unflatten")
def _view(cx: Context, x: object, *_: object) -> Value:
    value, shape = cx.value(x), cx.shape

    def element(index: Indices) -> Expr:
        return value.at(reshaped(index, shape, value.shape, cx.extents))

    return Value(shape, value.dtype, element)


@lowers("permute", "transpose", "t", "numpy_T", "mT")
def _permute(cx: Context, x: object, *dims: Any) -> Value:  # noqa: ANN401 reason: axes
    value = cx.value(x)
    rank = len(value.shape)
    if cx.name == "permute":
        order = [int(each) % rank for each in dims[0]]
    else:
        order = list(range(rank))
        one, other = (dims[0] % rank, dims[1] % rank) if cx.name == "transpose" else (0, rank - 1)
        order[one], order[other] = order[other], order[one]

    def element(index: Indices) -> Expr:
        return value.at([index[order.index(axis)] for axis in range(rank)])

    return Value(cx.shape, value.dtype, element)


@lowers("expand", "broadcast_to", "expand_copy")
def _expand(cx: Context, x: object, *_: object, **__: object) -> Value:
    value = cx.value(x)
    return Value(cx.shape, value.dtype, broadcast(value, len(cx.shape)))


@lowers("slice", "slice_copy")
def _slice(cx: Context, x: object, dim: int = 0, start: object = None, _: object = None, step: int = 1) -> Value:
    value = cx.value(x)
    axis = dim % len(value.shape)
    first = _start(cx, start, value.shape[axis])

    def element(index: Indices) -> Expr:
        moved = algebra.add(algebra.mul(index[axis], step), first)
        return value.at([*index[:axis], moved, *index[axis + 1 :]])

    return Value(cx.shape, value.dtype, element)


def _start(cx: Context, start: object, extent: Index) -> Index:
    """The first element of a slice, counted from the end if it is below 0, within the axis."""
    if start is None:
        return algebra.const(0)
    found = cx.size(start)
    if isinstance(found, Const) and found.value < 0:
        return algebra.maximum(algebra.add(extent, found), 0)
    return algebra.minimum(found, extent) if isinstance(extent, Const) else found


@lowers("select", "select_copy")
def _select(cx: Context, x: object, dim: int, place: object) -> Value:
    value = cx.value(x)
    axis, at = dim % len(value.shape), cx.size(place)
    if isinstance(at, Const) and at.value < 0:
        at = algebra.add(at, value.shape[axis])
    return Value(cx.shape, value.dtype, lambda index: value.at([*index[:axis], at, *index[axis:]]))


@lowers("as_strided")
def _as_strided(cx: Context, x: object, _: object, strides: Sequence[object], offset: object = None) -> Value:
    """Of a tensor that is dense, last axis fastest: its elements by their row-major numbers."""
    if not cx.is_dense(x):
        raise NotCovered("strides of a tensor that is not dense")
    value = cx.value(x)
    steps = [cx.size(each) for each in strides]
    start = algebra.const(0) if offset is None else cx.size(offset)

    def element(index: Indices) -> Expr:
        number = algebra.add(start, *(algebra.mul(i, step) for i, step in zip(index, steps, strict=True)))
        return value.at(split(number, value.shape, cx.extents))

    return Value(cx.shape, value.dtype, element)


@lowers("flip")
def _flip(cx: Context, x: object, dims: Sequence[int]) -> Value:
    value = cx.value(x)
    turned = {each % len(value.shape) for each in dims}

    def element(index: Indices) -> Expr:
        return value.at(
            [
                algebra.sub(algebra.sub(extent, 1), place) if axis in turned else place
                for axis, (place, extent) in enumerate(zip(index, value.shape, strict=True))
            ]
        )

    return Value(cx.shape, value.dtype, element)


@lowers("constant_pad_nd")
def _pad(cx: Context, x: object, pads: Sequence[object], fill: float = 0) -> Value:
    value = cx.value(x)
    rank = len(value.shape)
    before: list[Index] = [algebra.const(0)] * rank
    for k in range(len(pads) // 2):
        before[rank - 1 - k] = cx.size(pads[2 * k])

    def element(index: Indices) -> Expr:
        places = [algebra.sub(place, low) for place, low in zip(index, before, strict=True)]
        return within(value, places, fill)

    return Value(cx.shape, value.dtype, element)


def within(value: Value, places: Sequence[Index], outside: float) -> Expr:
    """The element at places that may lie outside of the tensor, where it is another value."""
    if value.tensor is not None:
        return Read(value.tensor, tuple(places), value.dtype, constant(outside).value)
    ends = [
        cond
        for place, extent in zip(places, value.shape, strict=True)
        for cond in (algebra.le(0, place), algebra.lt(place, extent))
    ]
    # What is not chosen is read all the same: any number will do where there is no element.
    return select(Inside(algebra.all_of(ends)), with_reads(value.at(places), _anywhere), constant(outside))


def _anywhere(read: Read) -> Expr:
    return read if read.outside is not None else evolve(read, outside=0.0)


@lowers("cat")
def _cat(cx: Context, tensors: Sequence[object], dim: int = 0) -> Value:
    values = [cx.value(each) for each in tensors]
    values = [each for each in values if each.shape != (algebra.const(0),)]
    axis = dim % len(cx.shape)

    def element(index: Indices) -> Expr:
        starts: list[Index] = [algebra.const(0)]
        for each in values[:-1]:
            starts.append(algebra.add(starts[-1], each.shape[axis]))
        *others, last = zip(values, starts, strict=True)
        found = _part(*last, index, axis)
        for value, start in reversed(others):
            below = Inside(algebra.lt(index[axis], algebra.add(start, value.shape[axis])))
            found = select(below, _part(value, start, index, axis), found)
        return found

    return Value(cx.shape, cx.dtype, element)


def _part(value: Value, start: Index, index: Indices, axis: int) -> Expr:
    """An element of one of the joined tensors; where the place is another's, any number."""
    return within(value, [*index[:axis], algebra.sub(index[axis], start), *index[axis + 1 :]], 0.0)


@lowers(
    "full",
    "full_like",
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "scalar_tensor",
)
def _full(cx: Context, *args: Any, **_: object) -> Value:  # noqa: ANN401 reason: as torch passes them
    name = cx.name
    fill = args[-1] if name in {"full", "full_like", "new_full", "scalar_tensor"} else float("ones" in name)
    if isinstance(fill, bool | int | float):
        return Value(cx.shape, cx.dtype, lambda _: constant(fill))
    raise NotCovered("a tensor filled with a number that is not known")


@lowers("arange", "iota")
def _arange(cx: Context, *args: Any, **options: Any) -> Value:  # noqa: ANN401 reason: as torch passes them
    whole = [each for each in args if not isinstance(each, float)]
    if len(whole) != len(args):
        raise NotCovered("a range of fractions")
    start = cx.size(args[0]) if len(args) > 1 else algebra.const(0)
    step = cx.size(args[2]) if len(args) > 2 else algebra.const(1)
    if cx.name == "iota":
        start, step = cx.size(options.get("start", 0)), cx.size(options.get("step", 1))
    return Value(cx.shape, cx.dtype, lambda index: coordinate(algebra.add(start, algebra.mul(index[0], step))))


@lowers("tril", "triu")
def _triangle(cx: Context, x: object, diagonal: object = 0) -> Value:
    value, apart = cx.value(x), cx.size(diagonal)
    lower = cx.name == "tril"

    def element(index: Indices) -> Expr:
        row, column = algebra.add(index[-2], apart), index[-1]
        cond = algebra.le(column, row) if lower else algebra.le(row, column)
        return select(Inside(cond), value.at(index), Constant(0.0))

    return Value(cx.shape, value.dtype, element)


@lowers("diagonal")
def _diagonal(cx: Context, x: object, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    value = cx.value(x)
    rank = len(value.shape)
    one, other = dim1 % rank, dim2 % rank

    def element(index: Indices) -> Expr:
        rest, place = list(index[:-1]), index[-1]
        places = {one: algebra.add(place, max(0, -offset)), other: algebra.add(place, max(0, offset))}
        return value.at([places[axis] if axis in places else rest.pop(0) for axis in range(rank)])

    return Value(cx.shape, value.dtype, element)


@lowers("diag_embed")
def _diag_embed(cx: Context, x: object, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    value = cx.value(x)
    if (offset, dim1, dim2) != (0, -2, -1):
        raise NotCovered("an embedded diagonal other than the main one of the last axes")

    def element(index: Indices) -> Expr:
        *rest, row, column = index
        return select(Inside(algebra.eq(row, column)), value.at((*rest, row)), Constant(0.0))

    return Value(cx.shape, value.dtype, element)
