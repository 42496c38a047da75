"""The names of convolutions: their extents, taps, strides and paddings, and the work of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil, log2, prod

from attrs import frozen

from argus.nests.convolution import Convolution, Taps
from argus.policy.bounds import Work
from argus.search.problems.families.space import refuse

FORM = "conv:NxCxHxW:KxRxS, then any of :stride=S, :pad=P, :dilation=D and :bf16, :f16, :f32"
_NAME = re.compile(r"conv:([1-9]\d{0,8}(?:x[1-9]\d{0,8}){2,4}):([1-9]\d{0,8}(?:x[1-9]\d{0,8}){1,3})((?::[\w=]+)*)")
_OPTION = re.compile(r"(stride|pad|dilation)=(\d{1,4}(?:x\d{1,4}){0,2})")
BYTES: Mapping[str, int] = {"bf16": 2, "f16": 2, "f32": 4}
_MOST_TAPS = 64
"""Along an axis."""
_FAR = 2.0


@frozen
class ConvolutionShape:
    """n inputs of c channels and these extents, k filters; axes: taps, stride, padding and dilation along each."""

    n: int
    c: int
    extents: tuple[int, ...]
    k: int
    axes: tuple[Taps, ...]
    dtype: str

    @property
    def name(self) -> str:
        parts = [f"conv:{_joined((self.n, self.c, *self.extents))}:{_joined((self.k, *(a.taps for a in self.axes)))}"]
        for option, values in (
            ("stride", [axis.stride for axis in self.axes]),
            ("pad", [axis.pad for axis in self.axes]),
            ("dilation", [axis.dilation for axis in self.axes]),
        ):
            if values != [_DEFAULTS[option]] * len(values):
                parts.append(f"{option}={_joined(values if len(set(values)) > 1 else values[:1])}")
        return ":".join([*parts, self.dtype])

    @property
    def conv(self) -> Convolution:
        """Over one axis, if each output is of the input at its own place: places then lie one after the other."""
        return Convolution((Taps(1),) if self.pointwise else self.axes)

    @property
    def pointwise(self) -> bool:
        return all((axis.taps, axis.stride, axis.pad) == (1, 1, 0) for axis in self.axes)

    @property
    def places(self) -> tuple[int, ...]:
        """Outputs along each axis of space."""
        return tuple(places_of(axis, extent) for axis, extent in zip(self.axes, self.extents, strict=True))

    @property
    def across(self) -> tuple[int, ...]:
        """The same, in one axis if it is pointwise."""
        return (prod(self.places),) if self.pointwise else self.places

    @property
    def sizes(self) -> dict[str, int]:
        """Of the kernels, by name."""
        found = sizes_of(self.n, self.c, self.k, self.extents, self.across)
        return without_inputs(found) if self.pointwise else found

    @property
    def work(self) -> Work:
        outputs, taps = self.n * self.k * prod(self.places), prod(axis.taps for axis in self.axes)
        # Taps that read beyond the inputs are no work.
        inside = prod(
            sum(_reads(axis, extent)) / (axis.taps * places)
            for axis, extent, places in zip(self.axes, self.extents, self.places, strict=True)
        )
        flops = 2.0 * outputs * self.c * taps * inside
        used = prod(_used(axis, extent) for axis, extent in zip(self.axes, self.extents, strict=True))
        read = self.n * self.c * used + self.k * self.c * taps
        size_of = BYTES[self.dtype]
        kinds = {} if self.dtype == "f32" else {self.dtype: flops}
        return Work.of(kinds, size_of * read, size_of * outputs)

    @property
    def place(self) -> tuple[float, ...]:
        """Logarithms of the sizes; another type is as far as sizes of four times."""
        taps = prod(axis.taps for axis in self.axes)
        return (
            log2(self.n * prod(self.places)),
            log2(self.c),
            log2(self.k),
            log2(taps),
            _FAR * log2(BYTES[self.dtype]),
        )


_DEFAULTS = {"stride": 1, "pad": 0, "dilation": 1}


def _joined(values: Sequence[int]) -> str:
    return "x".join(map(str, values))


def places_of(axis: Taps, extent: int) -> int:
    """Outputs along an axis."""
    return (extent + 2 * axis.pad - axis.dilation * (axis.taps - 1) - 1) // axis.stride + 1


def _reads(axis: Taps, extent: int) -> list[int]:
    """For each tap the outputs for which it reads an input."""
    places = places_of(axis, extent)
    found: list[int] = []
    for tap in range(axis.taps):
        shift = axis.dilation * tap - axis.pad
        first = max(0, ceil(-shift / axis.stride))
        end = min(places, (extent - 1 - shift) // axis.stride + 1)
        found.append(max(0, end - first))
    return found


def _used(axis: Taps, extent: int) -> int:
    """At least so many different inputs are read: those of the tap that reads most, or all of neighbouring windows."""
    if axis.dilation == 1 and axis.taps >= axis.stride:
        return min(extent + axis.pad, axis.stride * (places_of(axis, extent) - 1) + axis.taps) - axis.pad
    return max(_reads(axis, extent))


def sizes_of(n: int, c: int, k: int, extents: tuple[int, ...], places: tuple[int, ...]) -> dict[str, int]:
    """The sizes of a kernel."""
    inner = {f"I{axis}": extent for axis, extent in enumerate(extents)}
    return {"N": n, "C": c, "O": k, **inner, **{f"Y{axis}": extent for axis, extent in enumerate(places)}}


def without_inputs(sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a pointwise convolution's kernels, whose inputs have the places of the outputs."""
    return {name: extent for name, extent in sizes.items() if not name.startswith("I")}


def shape_of_name(text: str) -> ConvolutionShape:
    """Raises ArgusError (E903) for another name."""
    found = _NAME.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no convolution, expected {FORM}", "for example conv:32x64x56x56:64x3x3:pad=1:bf16")
    n, c, *extents = map(int, found[1].split("x"))
    k, *taps = map(int, found[2].split("x"))
    if len(taps) != len(extents):
        refuse(
            f"inputs of {len(extents)} axes of space and filters of {len(taps)}",
            "give a number of taps for each extent after N and C",
        )
    dtype, given = "bf16", {name: [value] * len(taps) for name, value in _DEFAULTS.items()}
    for option in filter(None, found[3].split(":")):
        numbers = _OPTION.fullmatch(option)
        if option in BYTES:
            dtype = option
        elif numbers is not None:
            values = [int(each) for each in numbers[2].split("x")]
            given[numbers[1]] = values * len(taps) if len(values) == 1 else values
            if len(given[numbers[1]]) != len(taps):
                refuse(f"`{option}` has {len(values)} numbers for {len(taps)} axes", "give one, or one for each axis")
        else:
            refuse(f"`{option}` is no option of a convolution", f"expected {FORM}")
    rows = zip(taps, given["stride"], given["dilation"], given["pad"], strict=True)
    shape = ConvolutionShape(n, c, tuple(extents), k, tuple(Taps(*row) for row in rows), dtype)
    _check(shape)
    return shape


def _check(shape: ConvolutionShape) -> None:
    """Raises ArgusError (E903) for a convolution that no template takes."""
    for axis, extent in zip(shape.axes, shape.extents, strict=True):
        if not axis.stride or not axis.dilation:
            refuse("a stride or dilation of 0", "give at least 1")
        if axis.taps > _MOST_TAPS:
            refuse(f"{axis.taps} taps along an axis, expected at most {_MOST_TAPS}", "name a smaller filter")
        if axis.pad >= axis.dilation * (axis.taps - 1) + 1:
            refuse(
                f"padding of {axis.pad} for {axis.taps} taps, whose outer windows have no input",
                "pad by less than a window",
            )
        if places_of(axis, extent) < 1:
            refuse(f"{axis.taps} taps do not fit in {extent} inputs", "give a larger input, or more padding")
