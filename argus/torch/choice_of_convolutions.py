"""Which convolutions are products of matrices: of filters with windows that lie in memory one beside another."""

from __future__ import annotations

from math import prod

import torch

from argus.core.index import Const, Index
from argus.kernels.nests.convolution_costs import milliseconds
from argus.nests.convolution import Convolution
from argus.ops.choice_f32 import time_of_batch
from argus.ops.times_f32 import copied
from argus.torch.choice_of_products import FEW, LARGE
from argus.torch.precision import products_of_convolutions

_WHOLE = 8
"""Elements of 16 bits in 16 bytes."""
_HALF = ("bf16", "f16")
_MOST = 1 << 28
"""Elements of windows that are stored."""


def is_product(conv: Convolution, inputs: tuple[Index, ...], outputs: tuple[Index, ...], dtype: str) -> bool:
    """Whether a convolution of inputs (n, c, *extents) to outputs (n, o, *places) is to be a product of matrices.

    Of f32, where models of times say so. Of 16 bits, where the windows' elements are not more than the inputs', and
    rows are multiples of 16 bytes. Extents that are not known are no reason for it.
    """
    known = [tuple(each.value for each in shape if isinstance(each, Const)) for shape in (inputs, outputs)]
    if conv.transposed or conv.groups > 1 or any(len(each) != len(inputs) for each in known):
        return False
    x, (n, o, *places) = known
    across, depth = prod(places), x[1] * prod(axis.taps for axis in conv.axes)
    if n * o * across * depth < LARGE:
        return False
    if dtype in _HALF:
        apart = all(axis.stride >= axis.taps for axis in conv.axes) and min(o, across) >= FEW
        return apart and not any(each % _WHOLE for each in (depth, depth if are_patches(conv) else across))
    elements = 0 if are_inputs(conv) else n * depth * across
    if elements > _MOST:
        return False
    made = copied(elements) if elements else 0.0
    precision = torch.get_float32_matmul_precision()
    product = made + time_of_batch((n, o, across, depth), precision)
    return dtype == "f32" and product < 1e3 * milliseconds(conv, x, known[1], products_of_convolutions())


def are_inputs(conv: Convolution) -> bool:
    """Whether the windows are the elements of the inputs, in their order."""
    return all((axis.taps, axis.stride, axis.pad) == (1, 1, 0) for axis in conv.axes)


def are_patches(conv: Convolution) -> bool:
    """Whether windows of several elements do not overlap, so that each is in one row of memory."""
    return prod(axis.taps for axis in conv.axes) > 1 and all(axis.stride >= axis.taps for axis in conv.axes)
