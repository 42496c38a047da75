"""Convolutions of which some axes have one element: as graphs read them, and of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.walk import substitute
from argus.nests.convolution import Convolution, Taps, convolution_nest
from argus.nests.nest import Nest, TensorType
from argus.nests.rewrite import placed

SEVERAL = 70
"""Channels that are more than a thread sums products of."""
Types = Mapping[str, TensorType]


@frozen
class Shape:
    """A convolution of n inputs of c channels, of these extents, to o channels. dtype: of all tensors."""

    conv: Convolution
    extents: tuple[int, ...]
    n: int = 2
    c: int = SEVERAL
    o: int = 11
    dtype: str = "bf16"

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.n, self.c, *self.extents

    @property
    def filters(self) -> tuple[int, ...]:
        first, second = (self.c, self.o) if self.conv.transposed else (self.o, self.c)
        return first, second // self.conv.groups, *(axis.taps for axis in self.conv.axes)

    @property
    def outputs(self) -> tuple[int, ...]:
        places = (_places(*each) for each in zip(self.conv.axes, self.extents, strict=True))
        return self.n, self.o, *places

    @property
    def several(self) -> Shape:
        """The same of several inputs and outputs' channels, and of more places, other ones along each axis."""
        return evolve(self, n=3, o=7, extents=tuple(extent + 8 + 2 * axis for axis, extent in enumerate(self.extents)))


def _places(axis: Taps, extent: int) -> int:
    reach = axis.dilation * (axis.taps - 1)
    if axis.transposed:
        return (extent - 1) * axis.stride - 2 * axis.pad + reach + 1
    return (extent + 2 * axis.pad - reach - 1) // axis.stride + 1


def turned(taps: int, stride: int = 1, pad: int = 0) -> Taps:
    return Taps(taps, stride, 1, pad, transposed=True)


def of(*axes: Taps, groups: int = 1) -> Convolution:
    return Convolution(axes, groups)


PADDED = of(Taps(3, pad=1), Taps(3, pad=1))
SHAPES: dict[str, Shape] = {
    "one input, one axis": Shape(of(Taps(3, pad=1)), (9,), n=1),
    "one input, two axes": Shape(PADDED, (4, 5), n=1),
    "one input, three axes": Shape(of(Taps(3), Taps(3), Taps(3)), (4, 6, 5), n=1),
    "one input, steps": Shape(of(Taps(3, 2, pad=1), Taps(3, 2, pad=1)), (7, 9), n=1),
    "one input, gaps": Shape(of(Taps(3, pad=2, dilation=2)), (9,), n=1),
    "one input, one tap": Shape(of(Taps(1), Taps(1)), (7, 6), n=1),
    "one input, one tap and steps": Shape(of(Taps(1, 2), Taps(1, 2)), (7, 9), n=1),
    "one input, transposed": Shape(of(turned(3, pad=1), turned(3)), (4, 7), n=1),
    "one input, transposed steps": Shape(of(turned(3, 2, 1)), (8,), n=1),
    "one filter": Shape(PADDED, (4, 5), o=1),
    "one filter, transposed": Shape(of(turned(3, pad=1), turned(3)), (4, 7), o=1),
    "one row": Shape(PADDED, (1, 9)),
    "one row of outputs": Shape(of(Taps(3), Taps(3, pad=1)), (3, 9)),
    "one column": Shape(PADDED, (9, 1)),
    "one place": Shape(PADDED, (1, 1)),
    "one place, one tap": Shape(of(Taps(1), Taps(1)), (1, 1)),
    "one window": Shape(of(Taps(4), Taps(3)), (4, 3)),
    "one of all but channels": Shape(PADDED, (1, 1), n=1, o=1),
}
ONE_CHANNEL: dict[str, Shape] = {
    "one channel": Shape(of(Taps(9, pad=1), Taps(9)), (10, 11), c=1),
    "one channel, transposed": Shape(of(turned(9), turned(8)), (3, 4), c=1),
    "one of all": Shape(of(Taps(9, pad=4), Taps(9, pad=4)), (1, 1), n=1, c=1, o=1),
}
"""The extents of channels are numbers in kernels."""


def extents(*numbers: int) -> tuple[Index, ...]:
    return tuple(map(algebra.const, numbers))


def nest_of(shape: Shape) -> tuple[Nest, Types]:
    """The nest of a graph, which reads at the coordinates of its axes of one element."""
    x, f, y = (
        TensorType(name, extents(*of), shape.dtype)
        for name, of in (("X", shape.inputs), ("F", shape.filters), ("Y", shape.outputs))
    )
    return convolution_nest(shape.conv, x, f, y), {"X": x, "F": f}


def at_zero(nest: Nest, kept: Sequence[str] = ()) -> Nest:
    """The nest, which reads at 0 along axes of one element, and of them has those of these names alone."""
    ones = [axis for axis in nest.domain if axis.extent is algebra.const(1)]
    zero = dict.fromkeys((axis.symbol for axis in ones), algebra.const(0))
    assert all(substitute(axis.index, zero) is algebra.const(0) for axis in ones)
    domain = tuple(axis for axis in nest.domain if axis not in ones or axis.name in kept)
    return evolve(nest, domain=domain, body=placed(nest.body, zero))
