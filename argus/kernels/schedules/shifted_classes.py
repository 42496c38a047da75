"""Transposed convolutions with steps on Hopper: a tile has the outputs of all classes along the last two axes.

Outputs y = s q + a of each class a are sums over shifted rows of the same inputs (`argus.kernels.schedules.shifted`).
A stage holds the inputs of a tile's windows, shifted by one tap, and the filters of those classes that have that tap;
each class has sums of its own. They are put side by side before they are stored, so that neighbouring outputs are
stored together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import mul
from typing import Any

from attrs import frozen

from argus.kernels.schedules.parts import PAIRS, count_parts
from argus.kernels.schedules.shifted import CHUNK, HEIGHT, assume_addressable, assume_counted, digits, single_store
from argus.language import (
    TV,
    DType,
    Fragment,
    Int,
    IntLike,
    Layout,
    Ring,
    Tensor,
    assume,
    by_columns,
    ceil_div,
    copy,
    eq,
    f32,
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
    warpgroup,
    warpgroups,
    wgmma,
    where,
    zeros,
)
from argus.nests.convolution import Convolution, Taps

WINDOWS = 64
"""Of a warpgroup, each with the outputs of all classes."""
WIDTH = 32
"""Outputs that are stored together along the last axis."""
Work = Callable[[Sequence[Int]], Callable[[Fragment, Sequence[IntLike]], Callable[[], Fragment]]]
"""What becomes of sums before they are stored, by the coordinates around a part of them, and the part's own."""
Class = tuple[int, int]
"""Of outputs, along the last two axes."""


@frozen
class Classes:
    """H200: tiles of 64 output channels by 128 windows, in `rows` rows along the axis before the last.

    bk: input channels of a stage, of one tap. products: of parts of f32 inputs, as `argus.kernels.schedules.parts`; 1
    of inputs of two bytes. sums: of a stage's products of parts that a thread has room for, so that with two those of
    a class are computed while the last one's are added. laid, run, blocks: of the launches that lay out, as of
    `Shifted`.
    """

    rows: int = 4
    bk: int = 32
    stages: int = 1
    products: int = 1
    run: int = 16
    blocks: int = 1056
    laid: int = 256
    sums: int = 1
    target = sm_90a
    threads = 384

    @property
    def across(self) -> int:
        """Windows of a tile along the last axis."""
        return 2 * WINDOWS // self.rows

    @property
    def parts(self) -> int:
        """Parts of an operand."""
        return count_parts(self.products)


@frozen
class Inner:
    """The last two axes. down: of rows, with one tap if there is one axis."""

    down: Taps
    across: Taps

    @property
    def classes(self) -> tuple[Class, ...]:
        """Those that have taps."""
        return tuple(product(self.down.summed, self.across.summed))

    @property
    def taps(self) -> Mapping[tuple[int, int], tuple[Class, ...]]:
        """The places of a window that classes read, with these classes."""
        places = product(range(self.down.window), range(self.across.window))
        found = {(t, u): tuple(product(classes_of(self.down, t), classes_of(self.across, u))) for t, u in places}
        return {place: classes for place, classes in found.items() if classes}


def classes_of(axis: Taps, t: int) -> tuple[int, ...]:
    """The classes that have a tap at a place of the window."""
    if axis.classes == 1:
        return (0,)
    return tuple(a for a in range(axis.classes) if any(axis.shift(r, a) == t - axis.lead for r in range(axis.taps)))


def inner_axes(conv: Convolution) -> tuple[tuple[Taps, ...], Inner]:
    """The axes around, and the last two."""
    *outer, down, across = [*([Taps(1, transposed=True)] if len(conv.axes) == 1 else []), *conv.axes]
    return tuple(outer), Inner(down, across)


def sum_classes(
    conv: Convolution, p: Sequence[Tensor], q: Sequence[Tensor], Y: Tensor, cfg: Classes, work: Work | None = None
) -> None:
    """Y[n, o, *y] = the sum over taps and channels of parts p, shifted, times parts q, for the products that count.

    Rows of p are as many as whole tiles read. work: what becomes of the sums before they are stored, by n and the
    coordinates along all axes of space but the last two.
    """
    of = _Sums(conv, *inner_axes(conv), tuple(p), tuple(q), Y, cfg, work)
    counts = of.counts()
    dtype = p[0].dtype
    rings = {place: _ring(cfg, dtype, len(classes)) for place, classes in of.inner.taps.items()}
    boxes = shared(f32, (2, 2, HEIGHT, WIDTH), swizzle=4 * WIDTH)
    tiles = persistent(counts, order=by_columns)
    looped = tuple(axis.window for axis in of.outer)
    chunks = ceil_div(p[0].shape[-1], cfg.bk)
    depth = reduce(mul, looped, chunks)
    if cfg.stages & (cfg.stages - 1):
        assume(reduce(mul, counts) * (depth + 1) < 1 << 32)  # so that the rings' counts of uses do not wrap

    with role("load", warpgroup(0).elected, registers=40):
        for tile in tiles:
            for i in loop(depth):
                several = max(looped, default=1) > 1
                taps, k = (digits(i // chunks, looped), i % chunks) if several else ([0 * i for _ in looped], i)
                for place, classes in of.inner.taps.items():
                    with rings[place].fill() as slot:
                        of.load_filters(slot, tile, (*taps, *place), k, classes)
                        of.load_inputs(slot, tile, (*taps, *place), k)
        for ring in rings.values():
            ring.finish()

    with role("math", warpgroups(1, 2), registers=232) as wg:
        mm = wgmma(dtype, n=WINDOWS)
        accs = {each: registers(f32, mm.C) for each in of.inner.classes}
        apart = [registers(f32, mm.C) for _ in range(cfg.sums)] if cfg.parts > 1 else []
        for tile in tiles:
            for acc in accs.values():
                acc[:] = 0.0
            for _ in loop(depth):
                for place, classes in of.inner.taps.items():
                    slot = rings[place].wait()
                    _multiply(cfg, (mm, slot, rings[place]), wg, [accs[each] for each in classes], apart)
            of.store(accs, boxes, wg, tile)


def _ring(cfg: Classes, dtype: DType, classes: int) -> Ring:
    """The stages of a place of the window: proofs follow rings with one use in an iteration."""
    parts, swizzle = range(cfg.parts), 2 * cfg.bk
    held = {f"q{i}_{k}": shared(dtype, (HEIGHT, cfg.bk), swizzle=swizzle) for i in parts for k in range(classes)}
    held |= {f"p{i}": shared(dtype, (2 * WINDOWS, cfg.bk), swizzle=swizzle) for i in parts}
    return Ring(cfg.stages, **held)


def _multiply(cfg: Classes, of: Any, wg: Int, accs: Sequence[Fragment], apart: Sequence[Fragment]) -> None:  # noqa: ANN401 reason: the language's own types
    """Add the products of a stage to the sums of its classes, and release it. apart: sums of one class's products."""
    mm, slot, ring = of
    pairs, last = PAIRS[cfg.products], len(accs) - 1
    for number in range(len(accs) + 1):
        if number <= last:
            own = apart[number % len(apart)] if apart else accs[number]
            for pair, (of_p, of_q) in enumerate(pairs):
                q, p = getattr(slot, f"q{of_q}_{number}"), getattr(slot, f"p{of_p}").tile((WINDOWS, cfg.bk), (wg, 0))
                mma(mm, own, q, p, init=pair == 0 and bool(apart))
        waited = number if len(apart) < 2 else number - 1
        if not 0 <= waited <= last:
            continue
        wgmma.wait(len(pairs) if waited < number <= last else 0)
        if waited == last:
            ring.release()
        if apart:
            accs[waited][:] = accs[waited] + apart[waited % len(apart)]


@frozen(eq=False)
class _Sums:
    """The launch that sums: what it reads and stores. Tiles are (o, w, d, *rows around, n), as `counts` says."""

    conv: Convolution
    outer: tuple[Taps, ...]
    inner: Inner
    p: tuple[Tensor, ...]
    q: tuple[Tensor, ...]
    Y: Tensor
    cfg: Classes
    work: Work | None

    @property
    def flat(self) -> bool:
        return len(self.conv.axes) == 1

    def counts(self) -> tuple[Int, ...]:
        """Tiles of output channels, windows along the last two axes, outputs along those around, and images."""
        P, Y, cfg = self.p[0], self.Y, self.cfg
        assume_addressable(P, self.q[0], Y)
        assume(P.shape[-1] >= 1, P.shape[-1] % CHUNK == 0)
        windows = [ceil_div(extent, axis.classes) for axis, extent in zip(self.conv.axes, Y.shape[2:], strict=True)]
        down: Any = 1 if self.flat else ceil_div(windows[-2], cfg.rows)
        read = list(windows) if self.flat else [*windows[:-2], cfg.rows * down, windows[-1]]
        for axis, extent, most, made in zip(self.conv.axes, Y.shape[2:], read, P.shape[1:-1], strict=True):
            assume(extent >= 1, most + axis.reach <= made)
        around = Y.shape[2 : 2 + len(self.outer)]
        found = ceil_div(Y.shape[1], HEIGHT), ceil_div(windows[-1], cfg.across), down, *around, Y.shape[0]
        assume_counted(found)
        return found

    def load_filters(
        self,
        slot: Any,  # noqa: ANN401 reason: a slot of a ring
        tile: Sequence[Int],
        taps: Sequence[IntLike],
        k: Int,
        classes: Sequence[Class],
    ) -> None:
        """Load the filters of the classes that have a tap at a place of the window."""
        o, _, _, *rows, _ = tile
        axes = (*self.outer, self.inner.down, self.inner.across)
        tap: Any = reduce(lambda tap, each: tap * each[0].window + each[1], zip(axes, taps, strict=True), 0)
        first: Any = tap
        for axis, y in zip(self.outer, rows, strict=True):
            first = first * axis.classes + y % axis.classes
        for c, (a, b) in enumerate(classes):
            number = (first * self.inner.down.classes + a) * self.inner.across.classes + b
            for j, each in enumerate(self.q):
                source = each[number].tile((HEIGHT, self.cfg.bk), (o, k))
                copy(source, getattr(slot, f"q{j}_{c}"), via=tma, edge=0)

    def load_inputs(self, slot: Any, tile: Sequence[Int], taps: Sequence[IntLike], k: Int) -> None:  # noqa: ANN401 reason: a slot of a ring
        """Load the inputs of the tile's windows at a place."""
        (_, w, d, *rows, n), cfg, inner = tile, self.cfg, self.inner
        *around, t, u = taps
        first = [y // axis.classes + axis.moved(t) for axis, y, t in zip(self.outer, rows, around, strict=True)]
        for j, each in enumerate(self.p):
            into = getattr(slot, f"p{j}")
            for r in range(cfg.rows):
                row = (n, *first) if self.flat else (n, *first, cfg.rows * d + r + inner.down.moved(t))
                box = each[row].rows(cfg.across * w + inner.across.moved(u)).tile((cfg.across, cfg.bk), (0, k))
                copy(box, into if cfg.rows == 1 else into.tile(box.shape, (r, 0)), via=tma, edge=0)

    def store(self, accs: Mapping[Class, Fragment], boxes: Tensor, wg: Int, tile: Sequence[Int]) -> None:
        """Store the outputs of a tile, part by part through shared memory."""
        (o, w, d, *rows, n), cfg = tile, self.cfg
        steps, side = self.inner.down.classes, self.inner.across.classes
        once = WIDTH // side  # windows of a part
        high = max(1, cfg.rows // 2)  # rows of a warpgroup
        wide = WINDOWS // high
        by, into = spread((HEIGHT, WIDTH), threads=128, vector=1), self.Y[(n, slice(None), *rows)]
        tail = None if self.work is None else self.work((n, *rows))
        sync()  # the last tile's last part has been read
        for number, (r, a, j) in enumerate(product(range(high), range(steps), range(wide // once))):
            box = boxes[wg, number % 2]
            copy(_side_by_side(accs, a, side, r * wide // once + j), box)
            sync()
            held = load(box, by)
            column = cfg.across // once * w + j + (wide // once * wg if cfg.rows == 1 else 0)
            row = steps * (d if cfg.rows == 1 else cfg.rows * d + high * wg + r) + a
            if not self.flat:
                held = held.gather(_with_row(by), lambda o, _, w: (o, w))
            at = (o, column) if self.flat else (o, row, column)
            found = held if tail is None else tail(held, at)()
            copy(found.to(self.Y.dtype), into.tile(found.shape, at), via=single_store(self.Y.dtype), edge=0)


def _side_by_side(accs: Mapping[Class, Fragment], row: int, side: int, number: int) -> Fragment:
    """A part of the sums of classes of one row: columns are outputs along the last axis."""
    once, by = (
        WIDTH // side,
        _of_columns_apart(accs[next(iter(accs))].tile((HEIGHT, WIDTH // side), (0, number)).layout, side),
    )
    found = zeros(f32, by)  # of classes that no tap reaches
    for b in range(side):
        acc = accs.get((row, b))
        if acc is None:
            continue
        own = acc.tile((HEIGHT, once), (0, number))
        if side == 1:
            return own
        apart = own.gather(by, lambda o, w: (o, w // side))
        _, w = apart.index
        found = where(eq(w % side, b), apart, found)
    return found


def _of_columns_apart(sums: TV, side: int) -> TV:
    """The layout of sums whose columns are `side` apart, and those between, which the same thread holds."""

    def apart(of: Layout, *first: tuple[int, int]) -> Layout:
        modes = *first, *((n, side * stride if stride >= HEIGHT else stride) for n, stride in of.flat_modes)
        return Layout(tuple(n for n, _ in modes), tuple(stride for _, stride in modes))

    high, wide = sums.tile
    return TV(apart(sums.threads), apart(sums.values, (side, HEIGHT)), (high, side * wide))


def _with_row(by: TV) -> TV:
    """The layout with an axis of one row between."""
    return TV(by.threads, by.values, (by.tile[0], 1, by.tile[1]))
