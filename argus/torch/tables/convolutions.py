"""Convolutions of aten: sums over channels and taps, and a bias that is added to what is in memory."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core.index import Const, Index
from argus.nests.convolution import Convolution, Taps, convolution_nest
from argus.nests.nest import Expr, TensorType
from argus.nests.rewrite import placed
from argus.nests.simplify import apply
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
    nest = convolution_nest(conv, inputs, filters, TensorType("", cx.shape, cx.dtype))
    places = tuple(axis.symbol for axis in nest.domain)

    def element(index: Indices) -> Expr:
        return placed(nest.body, dict(zip(places, index, strict=True)))

    found = cx.stored(Value(cx.shape, cx.dtype, element))
    if bias is None:
        return found
    added = cx.value(bias)
    return Value(cx.shape, cx.dtype, lambda index: apply("add", found.at(index), added.at(index[1:2])))


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
