"""Convolutions on Hopper as products of shifted rows: inputs and filters are laid out by launches, others multiply.

The inputs become rows of channels in bf16 or f16, padded, one workspace axis for each axis of space, so that for a tap
the rows of neighbouring outputs are a TMA box, shifted by the tap (`argus.nests.convolution`). Filters become a matrix
of output channels and channels for each tap. Tiles are of output channels by outputs along the last axis: a wgmma has
channels as its rows, so that outputs, which are contiguous, lie in its columns. With f32 inputs, each operand is its
parts (`argus.kernels.schedules.parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul
from typing import Any

from attrs import frozen

from argus.kernels.schedules.epilogues import Tail, apply
from argus.kernels.schedules.laid import Laid
from argus.kernels.schedules.parts import PAIRS, count_parts, parts_of
from argus.language import (
    TV,
    DType,
    Fragment,
    Int,
    Layout,
    Ring,
    Tensor,
    assume,
    by_columns,
    ceil_div,
    copy,
    eq,
    f32,
    global_store,
    ld_global_b16,
    ld_global_b32,
    load,
    loop,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    sync,
    tma,
    unflatten,
    warpgroup,
    warpgroups,
    wgmma,
    where,
)
from argus.nests.convolution import Convolution, Taps

CHUNK = 8
"""Elements of two bytes in 16 bytes, of which rows for TMA are multiples."""
HEIGHT, _WIDTH = 64, 32
"""Of the parts of a tile that are stored through shared memory."""
APART = 128
"""The most columns of sums that are apart, beside those that they are added to."""
_MOST, _LARGEST = 1 << 28, 1 << 50
"""The most elements along an axis, so that sums of coordinates fit 32 bits; of a tensor, so that addresses fit 64."""


@frozen
class Shifted:
    """H200: tiles of `channels` outputs' channels, 64 or 128, by `pixels` outputs along the last axis.

    rows: of outputs that lie one after another in a tile, each of `across` outputs along the last axis. laid: threads
    along that axis of those that lay out inputs, others along the axis before. bk: input channels per stage, of one
    tap. products: of parts, of f32 inputs, as `argus.kernels.schedules.parts`; 1 of inputs of two bytes. run: channels
    that a thread lays out at once, 8 or 16. blocks: of the launches that lay out.
    """

    channels: int = 64
    pixels: int = 256
    bk: int = 64
    stages: int = 4
    products: int = 1
    run: int = 16
    blocks: int = 1056
    rows: int = 1
    laid: int = 256
    target = sm_90a
    threads = 384

    @property
    def across(self) -> int:
        """Outputs of a tile along the last axis."""
        return self.pixels // self.rows

    @property
    def parts(self) -> int:
        """Parts of an operand."""
        return count_parts(self.products)

    @property
    def width(self) -> int:
        """The outputs of a tile that one warpgroup computes."""
        return self.pixels * self.channels // 128


@frozen
class Laying:
    """A launch that lays out operands, or results."""

    of: Laid
    target = sm_90a
    threads = 256

    @property
    def by(self) -> TV:
        """Channels of each thread, and threads along the last axis of space, and the one before."""
        if self.of.laid == self.threads:
            return spread((self.threads, self.of.run), threads=self.threads, vector=self.of.run)
        down = self.threads // self.of.laid
        threads = Layout((self.of.laid, down), (down, 1))
        return TV(threads, Layout(self.of.run, self.threads), (down, self.of.laid, self.of.run))


def padded_channels(channels: Int) -> Int:
    """The channels of a row of a workspace: a multiple of 16 bytes."""
    return CHUNK * ceil_div(channels, CHUNK)


def lay_out_inputs(conv: Convolution, X: Tensor, parts: Sequence[Tensor], channels: Int, cfg: Laying) -> None:
    """P[z, *u, c] = a part of X at the place of the workspace, and 0 outside, for each of `parts`.

    z counts inputs, phases and groups. channels: of a group.
    """
    groups, P = conv.groups, parts[0]
    assume_addressable(X, P)
    assume(P.shape[-1] % CHUNK == 0)
    by = cfg.by
    tile = by.tile
    inner = len(tile) - 1  # axes of space of a tile
    *spaces, laid = P.shape[1:]
    whole = len(spaces) - inner
    *tiles, across = (ceil_div(extent, each) for extent, each in zip(spaces[whole:], tile, strict=False))
    counts = across, ceil_div(laid, tile[-1]), *spaces[:whole], *tiles, P.shape[0]
    assume_counted(counts)
    for w, k, *rows, z in persistent(counts, order=by_columns, blocks=cfg.of.blocks):
        n, *of_phase, group = unflatten(z, (1, *(axis.phases for axis in conv.axes), groups))
        outer, numbers = rows[:whole], (*rows[whole:], w, k)

        def place(*at: Int, n: Int = n, outer: Sequence[Int] = outer, of: Any = of_phase, g: Int = group) -> Any:  # noqa: ANN401 reason: coordinates
            *own, c = at
            places = [a.step * i + p - a.lead for a, i, p in zip(conv.axes, (*outer, *own), of, strict=True)]
            return n, c if groups == 1 else where(c < channels, g * channels + c, -1), *places

        given = X.gather((*spaces[whole:], laid), place, outside=0)
        held = load(given.tile(tile, numbers), by, via=_single_load(X.dtype), edge=0)
        for each, into in zip(_split(held, P.dtype, len(parts)), parts, strict=True):
            copy(each, into[(z, *outer)].tile(tile, numbers), edge=0)


def lay_out_filters(conv: Convolution, F: Tensor, parts: Sequence[Tensor], outputs: Int, cfg: Laying) -> None:
    """Q[z, o, c] = a part of the filter of a tap, and 0 where there is none; z counts taps, groups and classes.

    outputs: channels of a group's outputs.
    """
    groups, Q = conv.groups, parts[0]
    assume_addressable(F, Q)
    by = spread(_SQUARE, threads=cfg.threads, vector=1)
    _, rows, across = Q.shape
    counts = ceil_div(across, _SQUARE[1]), ceil_div(rows, _SQUARE[0]), Q.shape[0]
    assume_counted(counts)
    for k, m, z in persistent(counts, order=by_columns, blocks=cfg.of.blocks):
        windows, classes = (tuple(axis.window for axis in conv.axes), tuple(axis.classes for axis in conv.axes))
        numbers = digits(z, (*windows, groups, *classes))
        spaces = len(conv.axes)
        window, group, of_class = numbers[:spaces], numbers[spaces], numbers[spaces + 1 :]
        whole = len(F.shape) == spaces + len(("o", "c"))  # or axes of one tap are left out
        places = zip(conv.axes, window, of_class, strict=True)
        at = [tap_of(axis, t, a) for axis, t, a in places if whole or axis.taps > 1]

        def place(o: Int, c: Int, g: Int = group, at: Any = at) -> Any:  # noqa: ANN401 reason: coordinates
            if not conv.transposed:
                return g * outputs + o, c, *at
            channels = F.shape[0] // groups
            return c if groups == 1 else where(c < channels, g * channels + c, -1), o, *at

        given = F.gather((rows, across), place, outside=0)
        held = load(given.tile(_SQUARE, (m, k)), by, via=_single_load(F.dtype), edge=0)
        for each, into in zip(_split(held, Q.dtype, len(parts)), parts, strict=True):
            copy(each, into[z].tile(_SQUARE, (m, k)), edge=0)


_SQUARE = (16, 16)
"""The tiles of filters that are laid out."""


def digits(number: Int, extents: Sequence[int]) -> tuple[Int, ...]:
    """The coordinates of the element with this row-major number, 0 along axes of one element."""
    found = iter(unflatten(number, tuple(each for each in extents if each > 1)) if max(extents, default=1) > 1 else ())
    return tuple(next(found) if each > 1 else 0 * number for each in extents)


def tap_of(axis: Taps, t: Int, of_class: Int) -> Int:
    """The tap of a filter at a place of the window, for a class of outputs; -1 if there is none."""
    if not axis.transposed or axis.falls:
        return t
    place = of_class + axis.pad - axis.stride * (axis.pace * t // axis.step - axis.lead)
    if axis.dilation == 1:
        return 0 * t + place
    return where(eq(place % axis.dilation, 0), place // axis.dilation, -1)


def sum_shifted(
    conv: Convolution, p: Sequence[Tensor], q: Sequence[Tensor], Y: Tensor, cfg: Shifted, tail: Tail | None = None
) -> None:
    """Y[z, o, *y] = the sum over taps and channels of parts p, shifted, times parts q, for the products that count.

    z counts inputs, groups and classes. tail: what becomes of the sums before they are stored, by z and the coordinates
    along all axes of space but the last.
    """
    parts, per_wg, P, Q = cfg.parts, cfg.width, p[0], q[0]
    *others, across = Y.shape[2:]
    assume_addressable(P, Q, Y)
    assume(P.shape[-1] >= 1, P.shape[-1] % CHUNK == 0)
    for axis, extent, made in zip(conv.axes, Y.shape[2:], P.shape[1:-1], strict=True):
        assume(extent >= 1, extent + axis.reach <= made)
    if cfg.rows > 1:
        assume(others[-1] % cfg.rows == 0)
        others = [*others[:-1], others[-1] // cfg.rows]
    counts = ceil_div(Q.shape[1], cfg.channels), ceil_div(across, cfg.across), *others, Y.shape[0]
    assume_counted(counts)
    mm = wgmma(P.dtype, n=per_wg // 2 if parts > 1 and per_wg > APART else per_wg)
    held = {f"q{i}": shared(P.dtype, (cfg.channels, cfg.bk), swizzle=2 * cfg.bk) for i in range(parts)}
    held |= {f"p{i}": shared(P.dtype, (cfg.pixels, cfg.bk), swizzle=2 * cfg.bk) for i in range(parts)}
    ring = Ring(cfg.stages, **held)
    boxes = shared(f32, (2, 2, HEIGHT, _WIDTH), swizzle=4 * _WIDTH)
    tiles = persistent(counts, order=by_columns)
    chunks = ceil_div(P.shape[-1], cfg.bk)
    depth = conv.taps * chunks
    if cfg.stages & (cfg.stages - 1):
        assume(reduce(mul, counts) * (depth + 1) < 1 << 32)  # so that the ring's count of uses does not wrap

    with role("load", warpgroup(0).elected, registers=40):
        for o, w, *rows, z in tiles:
            for i in loop(depth):
                tap, k = (0 * i, i) if conv.taps == 1 else (i // chunks, i % chunks)
                with ring.fill() as slot:
                    filters, inputs, shift = _sources(conv, tap, z, _first_of(rows, cfg))
                    for j, each in enumerate(q):
                        copy(
                            each[filters].tile((cfg.channels, cfg.bk), (o, k)), getattr(slot, f"q{j}"), via=tma, edge=0
                        )
                    for j, each in enumerate(p):
                        into = getattr(slot, f"p{j}")
                        for r in range(cfg.rows):
                            row = inputs if cfg.rows == 1 else (*inputs[:-1], inputs[-1] + r)
                            box = each[row].rows(cfg.across * w + shift).tile((cfg.across, cfg.bk), (0, k))
                            copy(box, into if cfg.rows == 1 else into.tile(box.shape, (r, 0)), via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        pieces = per_wg // mm.C.tile[1]
        accs = [registers(f32, mm.C) for _ in range(pieces)]
        apart = registers(f32, mm.C) if parts > 1 else None
        for o, w, *rows, z in tiles:
            if apart is not None:
                for acc in accs:
                    acc[:] = 0.0
            for i in loop(depth):
                slot = ring.wait()
                _multiply(cfg, mm, ring, slot, wg, (accs, apart), i)
            _store(cfg, accs, boxes, wg, Y, (o, w, *rows, z), tail)


def _first_of(rows: Sequence[Int], cfg: Shifted) -> list[Int]:
    """The first row of outputs of a tile, by the tile's number."""
    return list(rows) if cfg.rows == 1 else [*rows[:-1], cfg.rows * rows[-1]]


def _multiply(cfg: Shifted, mm: Any, ring: Ring, slot: Any, wg: Int, sums: Any, i: Int) -> None:  # noqa: ANN401 reason: the language's own types
    """Multiply a stage, and release it. sums: accumulators, and one of a stage's products of parts."""
    accs, apart = sums
    wide = int(mm.C.tile[1])
    for piece, acc in enumerate(accs):
        for number, (of_p, of_q) in enumerate(PAIRS[cfg.products]):
            q, p = getattr(slot, f"q{of_q}"), getattr(slot, f"p{of_p}")
            column = piece
            if cfg.channels == HEIGHT:
                column = len(accs) * wg + piece
            else:
                q = q.tile((HEIGHT, cfg.bk), (wg, 0))
            if len(accs) > 1 or cfg.channels == HEIGHT:
                p = p.tile((wide, cfg.bk), (column, 0))
            first = number == 0 if apart is not None else eq(i, 0)
            mma(mm, acc if apart is None else apart, q, p, init=first)
        wgmma.wait(0)
        if piece == len(accs) - 1:
            ring.release()
        if apart is not None:
            acc[:] = acc + apart


def _store(
    cfg: Shifted,
    accs: Sequence[Fragment],
    boxes: Tensor,
    wg: Int,
    Y: Tensor,
    of_tile: Sequence[Int],
    tail: Tail | None,
) -> None:
    """Store the sums of a tile, part by part through shared memory. of_tile: its numbers."""
    o, w, *rows, z = of_tile
    across_wg, down_wg = (wg, 0) if cfg.channels == HEIGHT else (0, wg)
    wide, once = min(_WIDTH, cfg.across), int(accs[0].shape[1])
    by = spread((HEIGHT, wide), threads=128, vector=1)
    sync()  # the last tile's last part has been read
    for j in range(cfg.width // wide):
        box = boxes[wg, j % 2] if wide == _WIDTH else boxes[wg, j % 2].tile((HEIGHT, wide), (0, 0))
        copy(accs[j * wide // once].tile((HEIGHT, wide), (0, j % (once // wide))), box)
        sync()
        number, parts = cfg.width // wide * across_wg + j, cfg.across // wide
        own = rows if cfg.rows == 1 else [*rows[:-1], cfg.rows * rows[-1] + number // parts]
        at = cfg.channels // HEIGHT * o + down_wg, parts * w + number % parts
        held = load(box, by)
        found = held if tail is None else apply(tail, held, at, (z, *own))
        into = _rows_of(Y, z, own).tile((HEIGHT, wide), at)
        copy(found.to(Y.dtype), into, via=single_store(Y.dtype), edge=0)


def _sources(conv: Convolution, tap: Int, z: Int, rows: Sequence[Int]) -> tuple[Int, tuple[Int, ...], Int]:
    """The matrix of filters of a tap, the matrix of inputs of a row of outputs, and its first row for output 0."""
    window = digits(tap, tuple(axis.window for axis in conv.axes))
    moved = [axis.moved(t) for axis, t in zip(conv.axes, window, strict=True)]
    phase: Any = 0
    for axis, m in zip(conv.axes, moved, strict=True):
        phase = phase * axis.phases + (m % axis.step if axis.phases > 1 else 0)
    *shifts, shift = (m // axis.step for axis, m in zip(conv.axes, moved, strict=True))
    many = conv.groups * conv.classes
    n, own = (z, 0 * z) if many == 1 else (z // many, z % many)
    first = (n * conv.phases + phase) * conv.groups + own // conv.classes
    return tap * many + own, (first, *(r + s for r, s in zip(rows, shifts, strict=True))), shift


def _rows_of(Y: Tensor, z: Int, rows: Sequence[Int]) -> Tensor:
    """The matrix of channels by outputs along the last axis."""
    return Y[(z, slice(None), *rows)]


def give_back(conv: Convolution, R: Tensor, Y: Tensor, cfg: Laying) -> None:
    """Y[n, o, *y] = R[z, o, *q] of the class of y, z counting inputs, groups and classes."""
    assume_addressable(R, Y)
    *others, across = Y.shape[2:]
    wide = cfg.threads
    counts = ceil_div(across, wide), *others, Y.shape[1], Y.shape[0]
    assume_counted(counts)
    own = R.shape[1]
    by = spread((wide,), threads=cfg.threads, vector=1)
    for w, *rows, o, n in persistent(counts, order=by_columns, blocks=cfg.of.blocks):

        def place(x: Int, n: Int = n, rows: Sequence[Int] = rows, o: Int = o) -> Any:  # noqa: ANN401 reason: coordinates
            group: Any = 0 if conv.groups == 1 else o // own
            z = n * conv.groups + group
            for axis, y in zip(conv.axes, (*rows, x), strict=True):
                z = z * axis.classes + y % axis.classes
            at = [y // axis.classes for axis, y in zip(conv.axes, (*rows, x), strict=True)]
            return z, o if conv.groups == 1 else o % own, *at

        given = R.gather((across,), place, outside=0)
        held = load(given.tile((wide,), (w,)), by, via=ld_global_b32, edge=0)
        copy(held.to(Y.dtype), Y[(n, o, *rows)].tile((wide,), (w,)), via=single_store(Y.dtype), edge=0)


def _split(x: Fragment, dtype: DType, parts: int) -> Iterable[Fragment]:
    return [each.to(dtype) for each in parts_of(x, parts)] if parts > 1 else [x.to(dtype)]


def _single_load(dtype: DType) -> Any:  # noqa: ANN401 reason: an instruction
    return ld_global_b32 if dtype.bits == 32 else ld_global_b16


def single_store(dtype: DType) -> Any:  # noqa: ANN401 reason: an instruction
    return tuple(each for each in global_store if each.vector_bits == dtype.bits)


def assume_addressable(*tensors: Tensor) -> None:
    for each in tensors:
        first, *others = each.shape
        assume(*(size < _MOST for size in each.shape if not isinstance(size, int)))
        assume(reduce(mul, others, first) < _LARGEST)


def assume_counted(counts: Sequence[Int]) -> None:
    assume(reduce(mul, counts) < 1 << 30, *(count >= 1 for count in counts))
