"""Pooling of aten: the greatest or the mean element of windows, along the last one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.nests.nest import Both, Constant, Expr, Inside, Read, Reduce, ReduceOp, Select
from argus.nests.simplify import apply
from argus.torch.tables.pointwise import FLOATS
from argus.torch.tables.table import Context, NotCovered, lowers
from argus.torch.values import Indices, Value

Numbers = Sequence[int] | int


@frozen
class _Window:
    """The window along one axis. count: its elements."""

    count: int
    stride: int
    padding: int
    dilation: int

    def place(self, out: Index, own: Index) -> Index:
        """The coordinate of one of its elements."""
        at = algebra.add(algebra.mul(out, self.stride), algebra.mul(own, self.dilation))
        return algebra.sub(at, self.padding)


def _windows(rank: int, counts: Numbers, strides: Numbers, padding: Numbers, dilation: Numbers) -> list[_Window]:
    parts = [_each(part, rank) for part in (counts, strides or counts, padding, dilation)]
    return [_Window(*numbers) for numbers in zip(*parts, strict=True)]


def _each(numbers: Numbers, rank: int) -> list[int]:
    given = [numbers] if isinstance(numbers, int) else list(numbers)
    return given * rank if len(given) == 1 else given


def _pooled(
    cx: Context, op: ReduceOp, x: object, windows: Sequence[_Window], outside: float, *, beyond: bool = False
) -> Value:
    """Each window combined; elements outside of the tensor are a number. beyond: the last windows may end there."""
    value = cx.operand(x)
    if value.dtype not in FLOATS:
        raise NotCovered(f"`{cx.name}` of {value.dtype}")
    rank = len(windows)
    spatial = value.shape[-rank:]

    def element(index: Indices) -> Expr:
        axes = tuple(cx.axis(algebra.const(each.count)) for each in windows)
        places = [w.place(o, axis.index) for w, o, axis in zip(windows, index[-rank:], axes, strict=True)]
        found = value.at([*index[:-rank], *places])
        padded = beyond or any(each.padding for each in windows)
        return Reduce(op, axes, _inside(found, places, spatial, outside) if padded else found)

    return Value(cx.shape, cx.dtype, element)


def _inside(found: Expr, places: Sequence[Index], extents: Sequence[Index], outside: float) -> Expr:
    """The element, or the number where a coordinate is not one of the tensor."""
    if isinstance(found, Read) and found.index[-len(places) :] == tuple(places):
        return evolve(found, outside=outside)
    ends = zip(places, extents, strict=True)
    tests = [Inside(cond) for at, size in ends for cond in (algebra.le(0, at), algebra.lt(at, size))]
    return Select(Both(tuple(tests)), found, Constant(outside))


@lowers("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    cx: Context,
    x: object,
    counts: Numbers,
    strides: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> tuple[Value, ...]:
    if cx.uses(1):
        raise NotCovered(f"`{cx.name}` with its indices")
    rank = int(cx.name[len("max_pool")])
    windows = _windows(rank, counts, strides, padding, dilation)
    return (cx.stored(_pooled(cx, "max", x, windows, -inf, beyond=ceil_mode)),)


@lowers("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    cx: Context,
    x: object,
    counts: Numbers,
    strides: Numbers = (),
    padding: Numbers = 0,
    ceil_mode: bool = False,
    include_padding: bool = True,
    divisor: int | None = None,
) -> Value:
    rank = int(cx.name[len("avg_pool")])
    windows = _windows(rank, counts, strides, padding, 1)
    if ceil_mode or (not include_padding and any(each.padding for each in windows)):
        raise NotCovered(f"`{cx.name}` with {'ceil_mode' if ceil_mode else 'count_include_pad=False'}")
    return _means(cx, x, windows, divisor)


@lowers("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive_avg_pool(cx: Context, x: object, shape: Sequence[object]) -> Value:
    """Means of windows of one size, where the numbers of results divide those of elements."""
    given = cx.value(x).shape[-len(shape) :]
    counts = [_quotient(extent, cx.size(each)) for extent, each in zip(given, shape, strict=True)]
    whole = [each for each in counts if each is not None]
    if len(whole) < len(counts):
        raise NotCovered(f"`{cx.name}` to numbers of results that do not divide those of elements")
    return _means(cx, x, _windows(len(whole), whole, whole, 0, 1), None)


def _quotient(extent: Index, count: Index) -> int | None:
    """How often a number divides another, both literal; None if it does not."""
    if not isinstance(extent, Const) or not isinstance(count, Const) or extent.value % count.value:
        return None
    return extent.value // count.value


def _means(cx: Context, x: object, windows: Sequence[_Window], divisor: int | None) -> Value:
    """The sum of each window, divided by a number or by that of its elements."""
    total = _pooled(cx, "add", x, windows, 0.0)
    count = Constant(float(divisor or prod(each.count for each in windows)))
    return cx.stored(Value(total.shape, total.dtype, lambda index: apply("div", total.at(index), count)))
