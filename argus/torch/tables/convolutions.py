"""Convolutions of aten: sums over channels and taps, and a bias that is added to what is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.core import algebra
from argus.core.index import Const, Index
from argus.nests.convolution import Convolution, Taps, convolution_nest, place_of
from argus.nests.nest import Expr, Read, TensorType
from argus.nests.rewrite import placed
from argus.nests.simplify import apply, summed
from argus.torch.choice_of_convolutions import are_inputs, are_patches, is_product
from argus.torch.tables.table import Context, NotCovered, lowers
from argus.torch.values import Indices, Value

_MOST_SPACES = 3


@lowers("convolution")
def _convolution(
    cx: Context,
    x: object,
    weight: object,
    bias: object,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    _: Sequence[int],
    groups: int,
) -> Value:
    inputs, filters = _in_memory(cx.operand(x)), _in_memory(cx.operand(weight))
    taps = filters.shape[2:]
    if len(inputs.shape) != len(filters.shape) or not 1 <= len(taps) <= _MOST_SPACES:
        raise NotCovered("a convolution without a batch, or over more than three axes")
    numbers = zip(taps, _each(stride, taps), _each(dilation, taps), _each(padding, taps), strict=True)
    conv = Convolution(tuple(_taps(*each, transposed=transposed) for each in numbers), groups)
    product = is_product(conv, inputs.shape, cx.shape, cx.dtype)
    found = cx.stored((_product if product else _sums)(cx, conv, inputs, filters))
    if bias is None:
        return found
    added = cx.value(bias)
    return Value(cx.shape, cx.dtype, lambda index: apply("add", found.at(index), added.at(index[1:2])))


def _sums(cx: Context, conv: Convolution, x: TensorType, f: TensorType) -> Value:
    """The sums over windows of the inputs."""
    nest = convolution_nest(conv, x, f, TensorType("", cx.shape, cx.dtype))
    places = tuple(axis.symbol for axis in nest.domain)

    def element(index: Indices) -> Expr:
        return placed(nest.body, dict(zip(places, index, strict=True)))

    return Value(cx.shape, cx.dtype, element)


def _product(cx: Context, conv: Convolution, x: TensorType, f: TensorType) -> Value:
    """The same, of windows in memory, which are the inputs themselves or copies of them."""
    windows = _windows(cx, conv, x)

    def element(index: Indices) -> Expr:
        n, o, *places = index
        axes = tuple(map(cx.axis, f.shape[1:]))
        within = tuple(axis.index for axis in axes)
        return summed(axes, apply("mul", Read(f.name, (o, *within), f.dtype), windows(n, within, tuple(places))))

    return Value(cx.shape, cx.dtype, element)


def _windows(cx: Context, conv: Convolution, x: TensorType) -> Callable[[Index, Indices, Indices], Expr]:
    """The input of a window's channel and taps, by the image, these, and the output's place.

    Windows that are not the inputs themselves are stored: each in a row, if they do not overlap, or each input of all
    windows in a row, as neighbours are neighbours there.
    """
    if are_inputs(conv):
        return lambda n, within, places: Read(x.name, (n, within[0], *places), x.dtype)
    inner = (x.shape[1], *(algebra.const(axis.taps) for axis in conv.axes))
    rank, in_rows = len(conv.axes), are_patches(conv)
    outside = 0.0 if any(axis.pad for axis in conv.axes) else None

    def element(index: Indices) -> Expr:
        n, *rest = index
        within, places = (rest[rank:], rest[:rank]) if in_rows else (rest[: rank + 1], rest[rank + 1 :])
        at = (place_of(*each) for each in zip(conv.axes, places, within[1:], strict=True))
        return Read(x.name, (n, within[0], *at), x.dtype, outside)

    shape = (x.shape[0], *cx.shape[2:], *inner) if in_rows else (x.shape[0], *inner, *cx.shape[2:])
    stored = cx.stored(Value(shape, cx.dtype, element))
    return lambda n, within, places: stored.at((n, *places, *within) if in_rows else (n, *within, *places))


def _in_memory(operand: Value) -> TensorType:
    if operand.tensor is None:
        raise NotCovered("a convolution of a view")
    return TensorType(operand.tensor, operand.shape, operand.dtype)


def _each(given: Sequence[int], taps: Sequence[Index]) -> Sequence[int]:
    return list(given) * len(taps) if len(given) == 1 else list(given)


def _taps(extent: Index, stride: int, dilation: int, pad: int, *, transposed: bool) -> Taps:
    if not isinstance(extent, Const):
        raise NotCovered("filters of a size that is not known")
    return Taps(extent.value, stride, dilation, pad, transposed)
