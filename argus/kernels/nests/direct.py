"""Convolutions of few channels by FMAs: each thread sums a tile of output channels and places in registers.

A block has the same channels of all places of a tile: filters come from shared memory, a tap of all its channels at a
time, and are those of all lanes of a warp; inputs come from global memory, a line of rows at a time, from which a
thread's rows take what each tap needs. Outputs of a transposed convolution with steps are summed class by class, for
which there are registers of their own, and are stored together.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from attrs import evolve

from argus.kernels.nests.direct_tiles import UNROLLED, Direct, stage_of
from argus.kernels.nests.tails import EpilogueOfTile, NestTail
from argus.kernels.schedules.shifted import tap_of
from argus.language import (
    TV,
    Fragment,
    Int,
    IntLike,
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    cp_async,
    eq,
    f32,
    fma,
    global_store,
    load,
    loop,
    shared,
    sync,
    unflatten,
    where,
    zeros,
)
from argus.nests.canonical import Canonical
from argus.nests.convolution import Taps
from argus.nests.convolution_forms import ConvolutionForm, convolution_form
from argus.nests.nest import Nest, Reduce
from argus.nests.rewrite import reductions

_PITCH = 4
"""Elements between the taps in shared memory."""
_LARGEST, _LONGEST, _MOST = 1 << 40, 1 << 24, 1 << 30
"""Elements of a tensor and along an axis, and blocks, so that offsets fit 64 bits, and coordinates 32."""
_NO_ROWS = Taps(1)
"""The axis of rows of a convolution over one axis."""


def direct(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Direct) -> None:
    """Store a convolution of f32 tensors over one to three axes, or what a nest computes of each of its elements."""
    (nest,) = form.nests
    (sums,) = reductions(nest.body)
    found = convolution_form(evolve(nest, body=sums), {each.type.name: each.type for each in form.parameters})
    assert found is not None
    for each in tensors.values():
        assume(prod(each.shape, start=1) <= _LARGEST)
        assume(*(extent <= _LONGEST for extent in each.shape if not isinstance(extent, int)))
    tiles = _Tiles(found, tensors[found.x], tensors[found.f], tensors[nest.output], cfg)
    tiles.sum()
    tiles.store(None if nest.body is sums else _tail(nest, sums, tiles, tensors, sizes))


def _tail(
    nest: Nest, sums: Reduce, tiles: "_Tiles", tensors: Mapping[str, Tensor], sizes: Mapping[str, Any]
) -> EpilogueOfTile:
    """What becomes of the sums of a tile."""
    inner = 1 if tiles.flat else 2
    *others, channels = nest.domain[: len(tiles.before) + 1]
    outer, own = nest.domain[len(others) + 1 : -inner], nest.domain[-inner:]
    tail = NestTail(nest.body, sums, (channels, *own), (*others, *outer), tensors, sizes, wide=False)
    return tail((*tiles.before, *tiles.at))


class _Tiles:
    """The tile of a block, and its sums."""

    def __init__(self, form: ConvolutionForm, X: Tensor, F: Tensor, Y: Tensor, cfg: Direct) -> None:
        self.conv, self.X, self.Y, self.cfg = form.conv, X, Y, cfg
        self.flat = len(form.conv.axes) == 1  # rows are of one line
        *self.outer, self.down, self.across = [*([_NO_ROWS] if self.flat else []), *form.conv.axes]
        spaces = len(form.conv.axes)
        *before, channels = Y.shape[:-spaces]
        *outer, high, wide = [*([1] if self.flat else []), *Y.shape[-spaces:]]
        _, R, W = cfg.sums().tile
        self.wide = R * W if self.flat else W
        windows = [ceil_div(high, self.down.classes), ceil_div(wide, self.across.classes)]
        counts = [ceil_div(windows[0], R), ceil_div(windows[1], self.wide)]
        joined = (*before, *outer, ceil_div(channels, cfg.outputs))
        assume(prod(joined, start=1) <= _MOST)
        first, *rest = block_id((prod(joined, start=1), *(counts[1:] if self.flat else counts)))
        self.row, self.column = (0, *rest) if self.flat else rest
        *numbers, self.o = unflatten(first, joined)
        self.before, self.at = numbers[: len(before)], numbers[len(before) :]
        self.n: IntLike = numbers[0] if form.batched else 0
        self.group: Int | None = numbers[len(before) - 1] if form.grouped else None
        self.F = F if self.group is None else F[self.group]
        self.acc = {of_class: zeros(f32, cfg.sums()) for of_class in product(self.down.summed, self.across.summed)}
        self.together = self.down.taps * self.across.taps <= UNROLLED or self.across.classes > 1
        self.stage = stage_of(cfg, None if self.flat else self.down, self.across, together=self.together)
        self.taps = self.down.taps * (self.across.taps if self.together else 1)

    def sum(self) -> None:
        """Sum over channels and taps, of which the kernel loops over those that it does not unroll."""
        cfg = self.cfg
        channels = ceil_div(self._channels, cfg.at_once)
        looped = [axis.window for axis in self.outer] + ([] if self.together else [self.across.taps])
        depth = channels * prod(looped)
        assume(depth < _LONGEST)
        by, each = cfg.filters(cfg.at_once * self.taps), cfg.staged(cfg.at_once * self.stage.elements)
        held = shared(f32, (2, by.tile[0], cfg.outputs + _PITCH))
        inputs = shared(f32, (2, *each.tile))

        def start(i: IntLike) -> None:
            c, *ts = unflatten(i, (channels, *looped))
            copy(self._filters(by, c, ts), held[i % 2].tile(by.tile, (0, 0)), via=cp_async, by=by, edge=0)
            copy(self._inputs(each, c, ts), inputs[i % 2], via=cp_async, by=each, edge=0)
            cp_async.commit()

        start(0 * self.o)
        for i in loop(depth):
            cp_async.wait(0)
            sync()
            start(i + 1)
            self._add(held[i % 2], inputs[i % 2])

    @property
    def _channels(self) -> IntLike:
        return self.F.shape[0 if self.conv.transposed else 1]

    def _filters(self, by: TV, c: Int, ts: Sequence[Int]) -> Tensor:
        """The filters of an iteration: taps of each of its channels, by output channels."""
        conv, cfg = self.conv, self.cfg
        whole = len(self.F.shape) == len(("o", "c")) + len(conv.axes)

        def place(t: Int, j: Int) -> Any:  # noqa: ANN401 reason: coordinates
            channel, t = cfg.at_once * c + t // self.taps, t % self.taps
            outer = [tap_of(axis, k, y % axis.classes) for axis, k, y in zip(self.outer, ts, self.at, strict=False)]
            inner = [t // self.across.taps, t % self.across.taps] if self.together else [t, ts[-1]]
            known = zip((*outer, *inner), (*self.outer, self.down, self.across), strict=True)
            taps = [each for each, axis in known if axis.taps > 1 or (whole and axis is not _NO_ROWS)]
            o = self.o * cfg.outputs + j
            return (channel, o, *taps) if conv.transposed else (o, channel, *taps)

        return self.F.gather(by.tile, place, outside=0)

    def _inputs(self, by: TV, c: Int, ts: Sequence[Int]) -> Tensor:
        """The inputs of an iteration: of each of its channels, rows of the block's windows one after the other."""
        cfg, down, across, stage = self.cfg, self.down, self.across, self.stage
        first = stage.left if self.together else _shift(across, ts[-1])

        def place(e: Int) -> Any:  # noqa: ANN401 reason: coordinates
            number = e // stage.elements
            e = e - stage.elements * number
            line = e // stage.pitch
            at = e - stage.pitch * line
            # Of columns that are not taken together, only those that one tap reads.
            own = stage.column(at) if self.together else across.step * at
            row = down.step * cfg.rows * cfg.lines * self.row + line + stage.top
            column = across.step * self.wide * self.column + own + first
            outer = [_outer(axis, y, t) for axis, y, t in zip(self.outer, self.at, ts, strict=False)]
            channel = cfg.at_once * c + number
            if self.group is not None:
                channel = self.group * self._channels + channel
            return self.n, channel, *outer, *(() if self.flat else (row,)), column

        return self.X.gather(by.tile, place, outside=0)

    def _add(self, filters: Tensor, inputs: Tensor) -> None:
        """Add the products of an iteration."""
        cfg, down, stage = self.cfg, self.down, self.stage
        columns: dict[int, list[tuple[int, int]]] = {}
        if self.together:
            for t, a in product(range(self.across.taps), range(self.across.classes)):
                if (s := self.across.shift(t, a)) is not None:
                    columns.setdefault(s - stage.left, []).append((t, a))
        else:
            columns[0] = [(0, 0)]
        for number, (shift, known) in product(range(cfg.at_once), columns.items()):
            lines = self._lines(inputs, number * stage.elements + stage.place(shift))
            for t2, a2 in known:
                for t1, a1 in product(range(down.taps), range(down.classes)):
                    if (s := down.shift(t1, a1)) is not None:
                        x = lines if self.flat else self._rows(lines, s - stage.top)
                        tap = number * self.taps + (t1 * self.across.taps + t2 if self.together else t1)
                        own = load(filters[tap].tile((cfg.outputs,), (0,)), cfg.sums().axis(0))
                        acc = self.acc[a1, a2]
                        acc[:] = fma(own, x, acc)

    def _lines(self, inputs: Tensor, first: int) -> Fragment:
        """The inputs that the rows of a thread need for one column of taps: (row of a line, column).

        first: the place of the first window's.
        """
        cfg, stage = self.cfg, self.stage
        by = cfg.sums().axis(1, 2) if self.flat else cfg.inputs(stage.span)

        def place(h: Int, w: Int) -> tuple[IntLike, ...]:
            if self.flat:
                return (cfg.width * h + w + first,)
            line, k = h // stage.span, h % stage.span
            return ((self.down.step * cfg.rows * line + k) * stage.pitch + w + first,)

        return load(inputs.gather(by.tile, place), by)

    def _rows(self, lines: Fragment, shift: int) -> Fragment:
        cfg, span = self.cfg, self.stage.span

        def held(r: Int, w: Int) -> tuple[IntLike, ...]:
            return r // cfg.rows * span + r % cfg.rows * self.down.step + shift, w

        return lines.gather(cfg.sums().axis(1, 2), held)

    def store(self, tail: EpilogueOfTile | None = None) -> None:
        """Store the sums of all classes. tail: what becomes of them before."""
        rows, columns = self.down.classes, self.across.classes
        by = self.cfg.sums(rows, columns)
        if rows * columns == 1:
            found = self.acc[0, 0]
        else:
            found = zeros(f32, by)  # of classes that no tap reaches
            for (a1, a2), acc in self.acc.items():
                own = acc.gather(by, lambda o, r, w: (o, r // rows, w // columns))
                _, r, w = own.index
                found = where(eq(r % rows, a1) & eq(w % columns, a2), own, found)
        single = tuple(each for each in global_store if each.vector_bits == self.Y.dtype.bits)
        into, at = self.Y[(*self.before, slice(None), *self.at)], (self.o, self.row, self.column)
        if self.flat:
            wide = self.cfg.width * columns
            found = found.gather(self.cfg.in_line(columns), lambda o, w: (o, w // wide, w % wide))
            at = at[0], at[-1]
        if tail is not None:
            found = tail(found, at)()
        copy(found.to(self.Y.dtype), into.tile(found.shape, at), via=single, edge=0)


def _shift(axis: Taps, tap: IntLike) -> Any:  # noqa: ANN401 reason: an integer of the kernel
    """`Taps.shift` of an axis with one class."""
    return axis.pad - axis.dilation * tap if axis.transposed else axis.dilation * tap - axis.pad


def _outer(axis: Taps, y: Int, t: Int) -> Any:  # noqa: ANN401 reason: an integer of the kernel
    """The coordinate that output y reads at place t of its window."""
    if not axis.transposed:
        return axis.stride * y + axis.dilation * t - axis.pad
    return y // axis.classes + axis.moved(t) - axis.lead
