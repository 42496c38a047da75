"""Tiles of convolutions by FMAs: which outputs a thread, a warp and a block sum, and how many for given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import frozen

from argus.language import TV, Layout, sm_90a
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.convolution_forms import ConvolutionForm, convolution_form

_WARP = 32
_WARPS = 8
"""Of a block."""
_FEW, _FEW_OF_CLASSES = 8, 32
"""Channels of inputs up to which FMAs are faster than matrix units, and of transposed convolutions with steps."""
_WORTH = {32: 1.0, 16: 1.12, 8: 1.2}
"""What a column costs by the lanes along a row, whose loads are in as many pieces as a warp has rows."""
_SUMS = 64
"""Of a thread."""


@frozen
class Direct:
    """A thread has `each` channels of outputs in `rows` rows, for each class; lanes have columns.

    A block has `channels` warps along the channels, and `more` along the rows. width: lanes along the columns; the
    other lanes of a warp have further rows. resident: blocks whose registers a processor is to have room for.
    """

    each: int = 8
    rows: int = 8
    channels: int = 8
    more: int = 1
    width: int = 32
    resident: int = 2
    target = sm_90a

    @property
    def threads(self) -> int:
        return _WARP * self.channels * self.more

    @property
    def lines(self) -> int:
        """Threads along the rows."""
        return _WARP // self.width * self.more

    @property
    def outputs(self) -> int:
        """Channels of a tile."""
        return self.each * self.channels

    def sums(self, rows: int = 1, columns: int = 1) -> TV:
        """The elements (channel, row, column) of a thread, which has as many for each of its rows and columns."""
        high, wide, o = self.rows * rows, self.width * columns, self.outputs
        shape = o, high * self.lines, wide
        whole = o * high * self.lines
        line = o * high
        lanes = (self.width, whole * columns), (_WARP // self.width, line)
        warps = (self.channels, self.each), (self.more, line * (_WARP // self.width))
        return TV(_modes(*lanes, *warps), _modes((self.each, 1), (high, o), (columns, whole)), shape)

    def inputs(self, span: int) -> TV:
        """The elements (row of a line, column) of inputs that a thread reads for one column of taps."""
        lanes = (self.width, self.lines * span), (_WARP // self.width, span)
        warps = (self.channels, 0), (self.more, span * (_WARP // self.width))
        return TV(_modes(*lanes, *warps), _modes((span, 1)), (self.lines * span, self.width))

    def filters(self, taps: int) -> TV:
        """The elements (tap, channel) of filters that threads copy, of at least so many taps."""
        rows = max(1, self.threads // self.outputs)
        high = rows * -(-taps // rows)
        return TV(_modes((self.outputs, high), (rows, 1)), _modes((high // rows, rows)), (high, self.outputs))


def _modes(*modes: tuple[int, int]) -> Layout:
    kept = [mode for mode in modes if mode[0] > 1] or [(1, 0)]
    return Layout(tuple(extent for extent, _ in kept), tuple(stride for _, stride in kept))


def config_for(form: Canonical, sizes: Mapping[str, int], *, all_channels: bool = True) -> Direct | None:
    """The configuration for a convolution of f32 tensors; None for other nests.

    all_channels: also for those of many channels that a program on matrix units computes.
    """
    types = {each.type.name: each.type for each in form.parameters}
    found = convolution_form(form.nests[0], types) if len(form.nests) == 1 else None
    if found is None or any(each.dtype != "f32" for each in types.values()):
        return None
    channels = types[found.f].shape[found.grouped + (0 if found.conv.transposed else 1)]
    if not all_channels and _is_for_matrix_units(found, int(computed(channels, sizes))):
        return None
    *_, outputs = (int(computed(each.extent, sizes)) for each in form.nests[0].domain[: -len(found.conv.axes)])
    places = [int(computed(each.extent, sizes)) for each in form.nests[0].domain[-len(found.conv.axes) :]]
    return direct_for(found, outputs, places)


def _is_for_matrix_units(form: ConvolutionForm, channels: int) -> bool:
    gaps = any(axis.classes > 1 and axis.dilation > 1 for axis in form.conv.axes)
    few = _FEW_OF_CLASSES if any(axis.classes > 1 for axis in form.conv.axes) else _FEW
    return channels > few and form.batched and not form.grouped and not gaps


def direct_for(form: ConvolutionForm, outputs: int, places: list[int]) -> Direct:
    """The configuration for so many channels of outputs of a group, and outputs along each axis.

    Tiles are as wide as leaves few of their columns without outputs.
    """
    axes = form.conv.axes
    inner = axes[-2:]
    classes, flat = prod(axis.classes for axis in inner), len(axes) == 1
    windows = [-(-place // axis.classes) for place, axis in zip(places[-2:], inner, strict=True)]
    each = 16 if flat or inner[0].step > 2 else 8
    if classes > 1:
        each = 8 if flat else 4 if classes <= _SUMS // 4 else 2
    while each > max(2, outputs):
        each //= 2
    rows = 1 if flat else max(1, _SUMS // (each * classes))
    rows = 1 << (min(rows, 8, windows[0] if not flat else 1).bit_length() - 1)
    channels = min(_WARPS, -(-outputs // each))
    width = _WARP if flat else min(_WORTH, key=lambda wide: -(-windows[-1] // wide) * wide * _WORTH[wide])
    more = 1 if flat else max(1, 1 << (_WARPS // channels).bit_length() - 1)
    while more > 1 and rows * more * (_WARP // width) // 2 >= windows[0]:
        more //= 2
    return Direct(each, rows, channels, more, width)
