"""Tiles of convolutions by FMAs: which outputs a thread, a warp and a block sum, and how many for given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from attrs import frozen

from argus.language import TV, Layout, sm_90a
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.convolution import Taps
from argus.nests.convolution_forms import ConvolutionForm, convolution_form

_WARP = 32
_WARPS = 8
"""Of a block."""
_WORTH = {32: 1.0, 16: 1.05, 8: 1.15}
"""What a column costs by the lanes along a row, whose stores are in as many pieces as a warp has rows."""
_SUMS, _STORED = 64, 128
"""Of a thread: sums, and outputs that it stores, zeros of classes without taps among them."""
_CLASSES = 4
"""Of outputs of a window, whose sums over several channels are proved."""
_PRODUCTS = 384
"""Of a thread in an iteration, at least, if there are channels for them."""
UNROLLED = 40
"""Taps of an iteration."""
_CHAIN = 50
"""Products that a thread adds to one sum in an iteration, of several channels at once, at most: so many are proved."""


@frozen
class Direct:
    """A thread has `each` channels of outputs in `rows` rows, for each class; lanes have columns.

    A block has `channels` warps along the channels, and `more` along the rows. width: lanes along the columns; the
    other lanes of a warp have further rows. With one axis of space, rows are further columns. at_once: channels of
    inputs of an iteration. resident: blocks whose registers a processor is to have room for.
    """

    each: int = 8
    rows: int = 8
    channels: int = 8
    more: int = 1
    width: int = 32
    at_once: int = 1
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

    def in_line(self, columns: int) -> TV:
        """The elements (channel, column) of a thread with one axis of space, as many for each of its columns."""
        o = self.outputs
        block = o * self.width * columns
        warps = (self.channels, self.each), (self.more, block * self.rows)
        values = (self.each, 1), (self.rows, block), (columns, o)
        shape = o, self.width * columns * self.rows * self.more
        return TV(_modes((self.width, o * columns), *warps), _modes(*values), shape)

    def inputs(self, span: int) -> TV:
        """The elements (row of a line, column) of inputs that a thread reads for one column of taps."""
        lanes = (self.width, self.lines * span), (_WARP // self.width, span)
        warps = (self.channels, 0), (self.more, span * (_WARP // self.width))
        return TV(_modes(*lanes, *warps), _modes((span, 1)), (self.lines * span, self.width))

    def staged(self, elements: int) -> TV:
        """At least so many elements in a row, which threads copy."""
        each = -(-elements // self.threads)
        return TV(_modes((self.threads, 1)), _modes((each, self.threads)), (each * self.threads,))

    def filters(self, taps: int) -> TV:
        """The elements (tap, channel) of filters that threads copy, of at least so many taps."""
        rows = max(1, self.threads // self.outputs)
        high = rows * -(-taps // rows)
        return TV(_modes((self.outputs, high), (rows, 1)), _modes((high // rows, rows)), (high, self.outputs))


@frozen
class Stage:
    """The inputs of a block's windows in shared memory: rows of `pitch` elements, columns `step` apart together.

    top, left: of the first, from the first window's first element on. rows: of all windows. span: of a thread's.
    wide: columns of a phase.
    """

    top: int
    left: int
    rows: int
    span: int
    step: int
    wide: int
    pitch: int

    @property
    def elements(self) -> int:
        return self.rows * self.pitch

    def column(self, place: Any) -> Any:  # noqa: ANN401 reason: an integer of the kernel
        """The input's column at a place of a row."""
        if self.step == 1:
            return place
        phase = place // self.wide
        return self.step * (place - self.wide * phase) + phase

    def place(self, column: int) -> int:
        """The place in a row of a column of the first window."""
        return column % self.step * self.wide + column // self.step


def stage_of(cfg: Direct, down: Taps | None, across: Taps, *, together: bool) -> Stage:
    """The stage of a tile. down: None with one axis. together: for all taps along a row, and not for one at a time."""
    left, right = _ends(across)
    if down is None:
        step = across.step if together else 1
        wide = cfg.width * cfg.rows * cfg.lines + ((right - left) // step if together else 0)
        return Stage(0, left, 1, cfg.rows, step, wide, step * wide)
    top, bottom = _ends(down)
    span = down.step * (cfg.rows - 1) + bottom - top + 1
    rows = down.step * cfg.rows * (cfg.lines - 1) + span
    step = across.step if together else 1
    wide = cfg.width + ((right - left) // step if together else 0)
    lines, apart = range(_WARP // cfg.width), down.step * cfg.rows

    def banks(pitch: int) -> int:
        return len({(line * apart * pitch + w) % _WARP for line in lines for w in range(cfg.width)})

    pitch = max(range(step * wide, step * wide + _WARP), key=lambda pitch: (banks(pitch), -pitch))
    return Stage(top, left, rows, span, step, wide, pitch)


def _ends(axis: Taps) -> tuple[int, int]:
    """The least and the largest shift of a tap."""
    shifts = [s for t in range(axis.taps) for a in range(axis.classes) if (s := axis.shift(t, a)) is not None]
    return min(shifts), max(shifts)


def _modes(*modes: tuple[int, int]) -> Layout:
    kept = [mode for mode in modes if mode[0] > 1] or [(1, 0)]
    return Layout(tuple(extent for extent, _ in kept), tuple(stride for _, stride in kept))


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Direct | None:
    """The configuration for a convolution of f32 tensors; None for other nests."""
    types = {each.type.name: each.type for each in form.parameters}
    found = convolution_form(form.nests[0], types) if len(form.nests) == 1 else None
    if found is None or any(each.dtype != "f32" for each in types.values()):
        return None
    of_filters = types[found.f].shape[found.grouped + (0 if found.conv.transposed else 1)]
    channels = int(computed(of_filters, sizes))
    *_, outputs = (int(computed(each.extent, sizes)) for each in form.nests[0].domain[: -len(found.conv.axes)])
    places = [int(computed(each.extent, sizes)) for each in form.nests[0].domain[-len(found.conv.axes) :]]
    return direct_for(found, channels, outputs, places)


def direct_for(form: ConvolutionForm, channels: int, outputs: int, places: list[int]) -> Direct:
    """The configuration for so many channels of inputs and of outputs of a group, and outputs along each axis.

    Tiles are as wide as leaves few of their columns without outputs.
    """
    axes = form.conv.axes
    inner, flat = axes[-2:], len(axes) == 1
    summed, classes = prod(len(axis.summed) for axis in inner), prod(axis.classes for axis in inner)
    width = _WARP
    windows = [-(-place // axis.classes) for place, axis in zip(places[-2:], inner, strict=True)]
    if flat:
        windows = [-(-windows[0] // width), width]
    else:
        width = min(_WORTH, key=lambda wide: -(-windows[-1] // wide) * wide * _WORTH[wide])
    each = 16 if not flat and inner[0].step > 2 else 8
    if summed > 1 and not flat:
        each = 4 if summed <= _SUMS // 4 else 2
    while each > max(2, outputs):
        each //= 2
    rows = max(1, min(8, windows[0], _SUMS // (each * summed), _STORED // (each * classes)))
    rows = 1 << rows.bit_length() - 1
    warps = min(_WARPS, -(-outputs // each))
    more = max(1, 1 << (_WARPS // warps).bit_length() - 1)
    while more > 1 and rows * more * (_WARP // width) // 2 >= windows[0]:
        more //= 2
    at_once, sums = 1, each * rows * prod(axis.taps for axis in inner)
    # With classes of windows that loops run through, or many of them, sums of several channels are not proved.
    single = form.grouped or any(axis.classes > 1 for axis in axes[:-2]) or classes > _CLASSES
    taps = prod(-(-axis.taps // axis.classes) for axis in inner)
    chain = taps if taps <= UNROLLED else 1  # of more taps, an iteration has some
    while not single and at_once < min(8, channels) and at_once * sums < _PRODUCTS and 2 * at_once * chain <= _CHAIN:
        at_once *= 2
    return Direct(each, rows, warps, more, width, at_once)
