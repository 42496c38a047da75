"""Convolutions as data, and as sums over windows: the form in which all of them have steps of one element.

Along one axis, output y of a convolution with stride s reads inputs `s y + dilation r - pad`. Inputs that are s apart,
beginning at one of s phases, are neighbours in a workspace; in it each tap is a shift. A transposed convolution reads
`(y + pad - dilation r) / s` where that is whole: outputs y = s q + a of one class a are a convolution with steps of
one, with those taps that the class has, and the classes are further outputs of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.walk import substitute, symbols
from argus.nests.nest import Apply, Axis, Constant, Expr, Inside, Nest, Read, Reduce, Select, TensorType, size

_MOST_SPACES = 3
"""Axes of space, beside which a tensor map has two."""


@frozen
class Taps:
    """The taps along one axis, and the window that they make in the workspace.

    pad: zeros before the first input; of a transposed convolution, outputs that are left out before the first.
    """

    taps: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    transposed: bool = False

    @property
    def classes(self) -> int:
        """Outputs of one window."""
        return self.stride if self.transposed else 1

    @property
    def step(self) -> int:
        """The distance of inputs that are neighbours in the workspace."""
        return 1 if self.transposed else self.stride

    @property
    def phases(self) -> int:
        """The phases of inputs that some tap reads, which are the first ones."""
        spread = not self.transposed and self.taps > 1 and self.dilation % self.stride != 0
        return self.stride if spread else 1

    @property
    def window(self) -> int:
        """The number of taps of a window."""
        return self._most - self._least + 1 if self.classes > 1 else self.taps

    @property
    def lead(self) -> int:
        """Zeros in the workspace before the first input; where negative, inputs that are left out."""
        return -self._least if self.transposed else self.pad

    @property
    def pace(self) -> int:
        """Inputs from one tap of a window to the next."""
        return 1 if self.classes > 1 else self.dilation

    @property
    def reach(self) -> int:
        """The shift of the last tap of a window."""
        return self.pace * (self.window - 1) // self.step

    @property
    def falls(self) -> bool:
        """Whether a window is in the order of the filter's taps, the first of which reads the last input."""
        return self.transposed and self.classes == 1

    def moved(self, place: Any) -> Any:  # noqa: ANN401 reason: an integer of a kernel
        """How far the input at a place of a window lies behind the window's first input."""
        return self.pace * (self.window - 1 - place) if self.falls else self.pace * place

    def shift(self, tap: int, of_class: int) -> int | None:
        """The place, from `step` times a window's number on, that a tap reads; None where a class has no such tap."""
        if not self.transposed:
            return self.dilation * tap - self.pad
        place = of_class + self.pad - self.dilation * tap
        return place // self.stride if place % self.stride == 0 else None

    @property
    def summed(self) -> tuple[int, ...]:
        """The classes that some tap reads: the outputs of others are 0."""
        return tuple(a for a in range(self.classes) if any(self.shift(t, a) is not None for t in range(self.taps)))

    @property
    def _least(self) -> int:
        return -((self.dilation * (self.taps - 1) - self.pad) // self.stride)

    @property
    def _most(self) -> int:
        return (self.stride - 1 + self.pad) // self.stride


@frozen
class Convolution:
    """A convolution over one to three axes.

    Inputs are (N, C, *inputs) and filters (O, C / groups, *taps), of a transposed convolution (C, O / groups, *taps).
    """

    axes: tuple[Taps, ...]
    groups: int = 1

    @property
    def transposed(self) -> bool:
        return self.axes[0].transposed

    @property
    def taps(self) -> int:
        """Of a window."""
        return prod(axis.window for axis in self.axes)

    @property
    def phases(self) -> int:
        return prod(axis.phases for axis in self.axes)

    @property
    def classes(self) -> int:
        return prod(axis.classes for axis in self.axes)


def convolution_nest(conv: Convolution, x: TensorType, f: TensorType, output: TensorType) -> Nest:
    """The nest of a convolution of inputs and filters, with outputs as many as `output` has."""
    names = ("n", "o", *(f"y{axis}" for axis in range(len(conv.axes))))
    domain = tuple(Axis(name, extent) for name, extent in zip(names, output.shape, strict=True))
    inner = x.shape[1] if conv.groups == 1 else _channels(conv, x, f)
    taps = (Axis(f"r{k}", algebra.const(axis.taps)) for k, axis in enumerate(conv.axes) if axis.taps > 1)
    body = _body(conv, (x, f), domain, (Axis("c", inner), *taps))
    return Nest(output.name, output.dtype, domain, body)


def with_joined_rows(nest: Nest, tensors: Mapping[str, TensorType]) -> tuple[Nest, Mapping[str, TensorType]]:
    """A convolution whose last axis has one tap, as one over one axis less: its rows lie one after the other.

    Its gaps along the axis before are then as many rows. Other nests, and extents that are no numbers, stay.
    """
    found = convolution_of(nest, tensors)
    if found is None or len(found[0].axes) == 1:
        return nest, tensors
    conv, x, f = found[0], tensors[found[1]], tensors[found[2]]
    *outer, before, last = conv.axes
    wide = x.shape[-1]
    plain = (last.taps, last.stride, last.pad, before.stride) == (1, 1, 0, 1) and before.taps > 1
    if not plain or not isinstance(wide, Const) or nest.domain[-1].extent is not wide or wide.value < 1:
        return nest, tensors
    joined = evolve(before, dilation=before.dilation * wide.value, pad=before.pad * wide.value)
    shape = tuple(axis.extent for axis in nest.domain)
    x, y = (
        TensorType(name, (*extents[:-2], algebra.mul(*extents[-2:])), dtype)
        for name, extents, dtype in ((x.name, x.shape, x.dtype), (nest.output, shape, nest.dtype))
    )
    if len(f.shape) == len(shape):
        f = evolve(f, shape=f.shape[:-1])
    made = convolution_nest(evolve(conv, axes=(*outer, joined)), x, f, y)
    return with_joined_rows(made, {**tensors, x.name: x, f.name: f})


def nest_of_sizes(conv: Convolution, dtype: str) -> tuple[Nest, tuple[TensorType, TensorType, TensorType]]:
    """The nest Y of X and F, and their types: over the sizes N, C, O, B of F in groups, I0 of inputs, Y0 of outputs."""
    spaces = range(len(conv.axes))
    n, c, o, b = map(size, "NCOB")
    first, second = (c, o) if conv.transposed else (o, c)
    inputs, outputs = (tuple(size(f"{letter}{axis}") for axis in spaces) for letter in "IY")
    taps = (algebra.const(axis.taps) for axis in conv.axes)
    x, y = TensorType("X", (n, c, *inputs), dtype), TensorType("Y", (n, o, *outputs), dtype)
    f = TensorType("F", (first, second if conv.groups == 1 else b, *taps), dtype)
    return convolution_nest(conv, x, f, y), (x, f, y)


def convolution_of(nest: Nest, tensors: Mapping[str, TensorType]) -> tuple[Convolution, str, str] | None:
    """The convolution that a nest is, with the names of its inputs and filters; None for other nests.

    Of each axis the numbers are read off, and the nest of the convolution that has them is the nest, or it is another.
    """
    outer = len(("n", "o"))
    match nest.body:
        case Reduce(op="add", axes=axes, body=Apply(op="mul", args=(left, Read() as filters))):
            inputs = left.then if isinstance(left, Select) else left
        case _:
            return None
    spaces = len(nest.domain) - outer
    if not isinstance(inputs, Read) or not 1 <= spaces <= _MOST_SPACES or len(inputs.index) != len(nest.domain):
        return None
    x, f = tensors[inputs.tensor], tensors[filters.tensor]
    if len(f.shape) < outer:  # without the axis of one channel
        return None
    spaces_of = zip(inputs.index[outer:], nest.domain[outer:], strict=True)
    for found in product(*(list(_taps(place, y, axes[1:])) for place, y in spaces_of)):
        for conv in _of_groups(found, x, f, nest.domain[1].extent):
            taps = [axis for axis in found if axis.taps > 1]
            fits = len(axes) == len(taps) + 1 and len(f.shape) in (outer + spaces, outer + len(taps))
            if fits and _body(conv, (x, f), nest.domain, axes) == nest.body:
                return conv, x.name, f.name
    return None


def _of_groups(axes: tuple[Taps, ...], x: TensorType, f: TensorType, outputs: Index) -> Iterator[Convolution]:
    yield Convolution(axes)
    whole, part = outputs if axes[0].transposed else x.shape[1], f.shape[1]
    if isinstance(whole, Const) and isinstance(part, Const) and part.value:
        yield Convolution(axes, whole.value // part.value)


def _taps(place: Index, y: Axis, axes: Sequence[Axis]) -> Iterator[Taps]:
    """What an axis may be, by the coordinate of its inputs; for another coordinate the nest differs."""
    r = next((axis for axis in axes if axis.symbol in symbols(place)), Axis("", algebra.const(1)))
    if not isinstance(r.extent, Const):
        return

    def at(output: int, tap: int) -> int | None:
        found = substitute(place, {y.symbol: algebra.const(output), r.symbol: algebra.const(tap)})
        return found.value if isinstance(found, Const) else None

    first, ahead, along, taps = at(0, 0), at(1, 0), at(0, 1), r.extent.value
    if first is None or ahead is None or along is None:
        return
    if ahead > first and along >= first:
        yield Taps(taps, ahead - first, max(along - first, 1), -first)
    jumps = [output for output in range(1, _MOST_STRIDE + 1) if at(output, 0) != at(output - 1, 0)]
    if len(jumps) > 1:
        stride = jumps[1] - jumps[0]
        pad = stride * first + (stride - jumps[0]) % stride
        for dilation in range(1, _MOST_DILATION + 1):
            yield Taps(taps, stride, dilation, pad, transposed=True)


_MOST_STRIDE, _MOST_DILATION = 32, 16
"""Of transposed convolutions that are recognised."""


def _channels(conv: Convolution, x: TensorType, f: TensorType) -> Index:
    """Input channels of a group."""
    return algebra.floordiv(x.shape[1], conv.groups) if conv.transposed else f.shape[1]


def _body(conv: Convolution, of: tuple[TensorType, TensorType], domain: Sequence[Axis], axes: Sequence[Axis]) -> Reduce:
    """The sum. axes: channels, and the taps of axes with several. The filters may lack the axes of one tap."""
    (x, f), (n, o, *ys), (c, *rest) = of, domain, axes
    several = iter(rest)
    rs = [next(several).index if axis.taps > 1 else algebra.const(0) for axis in conv.axes]
    whole_shape = len(f.shape) == len(domain)
    taps = [r for axis, r in zip(conv.axes, rs, strict=True) if whole_shape or axis.taps > 1]
    channel, first, second = c.index, o.index, c.index
    if conv.groups > 1:
        own = f.shape[1] if conv.transposed else algebra.floordiv(f.shape[0], conv.groups)
        group = algebra.floordiv(o.index, own)
        channel = algebra.add(algebra.mul(group, _channels(conv, x, f)), c.index)
        second = algebra.mod(o.index, own) if conv.transposed else c.index
    if conv.transposed:
        first, second = channel, o.index if conv.groups == 1 else second
    places = [place_of(axis, y.index, r) for axis, y, r in zip(conv.axes, ys, rs, strict=True)]
    at = [algebra.floordiv(p, a.stride) if a.transposed else p for a, p in zip(conv.axes, places, strict=True)]
    read: Expr = Read(x.name, (n.index, channel, *at), x.dtype, 0.0)
    whole = algebra.all_of(
        algebra.eq(algebra.mod(place, axis.stride), 0)
        for axis, place in zip(conv.axes, places, strict=True)
        if axis.transposed and axis.stride > 1
    )
    if whole is not algebra.TRUE:
        read = Select(Inside(whole), read, Constant(0.0))
    filters = Read(f.name, (first, second, *taps), f.dtype)
    return Reduce("add", tuple(axes), Apply("mul", (read, filters)))


def place_of(axis: Taps, y: Index, r: Index) -> Index:
    """The coordinate of an input, of a transposed convolution times the stride."""
    moved = algebra.mul(r, axis.dilation)
    if axis.transposed:
        return algebra.sub(algebra.add(y, axis.pad), moved)
    return algebra.sub(algebra.add(algebra.mul(y, axis.stride), moved), axis.pad)
