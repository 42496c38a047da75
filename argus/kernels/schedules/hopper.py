"""The cooperative and ping-pong schedules on Hopper: two warpgroups share each tile, or alternate between tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Protocol

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction, matrix_of, slot_for
from argus.kernels.schedules.epilogues import Deferred, Epilogue, Tail, TileCoord
from argus.language import (
    DType,
    Fragment,
    Int,
    Order,
    Ring,
    Tensor,
    Turns,
    assume,
    bf16,
    bulk,
    by_rows,
    ceil_div,
    copy,
    curved,
    elected,
    eq,
    f32,
    fence,
    load,
    loop,
    mma,
    no_pdl,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    stmatrix,
    super_tiled,
    sync,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)

_ROWS, _COLUMNS, _THREADS = 64, 32, 128
"""Of a part that is stored by single elements; threads of a warpgroup."""
Part = tuple[Deferred, TileCoord]


@frozen
class Parts:
    """The parts of an accumulator; `each` yields `count` of them, once, in order."""

    count: int
    each: Iterator[Part]


@frozen
class Fetch:
    """An extra operand per tile: the producer loads it before A and B, and the consumers wait for it.

    fetch: loads it for tile (m, n). finish: called by the producer before it exits.
    """

    fetch: Callable[[Int, Int], None]
    wait: Callable[[], None]
    finish: Callable[[], None]


RESIDENT = {8: 15, 4: 30, 3: 39}
"""Clusters of so many CTAs that run at a time, where that is fewer than SMs for them: a cluster's SMs share a GPC."""


def blocks_of(cluster: tuple[int, ...]) -> int | None:
    """Blocks of a persistent kernel: so many that all run at a time; None for the number of processors."""
    size = prod(cluster)
    return size * RESIDENT[size] if size in RESIDENT else None


NO_FETCH = Fetch(lambda _m, _n: None, lambda: None, lambda: None)


@frozen
class Hopper:
    """H200: bm x bn tiles, bk of K per stage; one producer warpgroup and two consumer warpgroups.

    bn: a multiple of 32 up to 256. group: rows of a super-tile; curve: side of the squares of tiles that a Hilbert
    curve orders; 0 and 0: row-major tiles. cluster: CTAs along rows, then columns. whole: one shared-memory box for
    each part of a tile, which takes the memory of a stage or more and saves barriers; else `turns` boxes in rotation.
    Techniques that can be switched off: flight, one wgmma stays in flight while the previous stage is released;
    realloc, roles get different register counts; persistent, a CTA takes several tiles (always so with pingpong); box,
    the epilogue stores through shared memory by TMA; pdl, programmatic dependent launch. single: it stores single
    elements instead, so that rows of C may have any length.
    """

    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 4
    pingpong: bool = False
    group: int = 0
    curve: int = 0
    cluster: tuple[int, ...] = (1,)
    whole: bool = False
    turns: int = 2
    flight: bool = True
    realloc: bool = True
    persistent: bool = True
    box: bool = True
    pdl: bool = True
    single: bool = False
    target = sm_90a
    threads = 384

    @property
    def order(self) -> Order:
        """The order of tiles, or of clusters of tiles."""
        if self.curve:
            return curved(self.curve)
        return super_tiled(self.group) if self.group else by_rows


def hopper_cooperative(problem: Contraction, cfg: Hopper, tail: Tail, extra: Fetch = NO_FETCH) -> None:
    """Both consumer warpgroups work on one tile, 64 rows each; one wgmma in flight while the last stage is released."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.assume_aligned(stores=not cfg.single)
    assume(count < 1 << 24)  # so that coordinates of tiles fit 32 bits
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = begin_kernel(cfg, C.dtype)
    tiles = tiles_of(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(count, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40 if cfg.realloc else None):
        for m, n, *z in tiles:
            extra.fetch(m, n)
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(matrix_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(matrix_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()
        extra.finish()

    with role("math", warpgroups(1, 2), registers=232 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        for m, n, *z in tiles:
            extra.wait()
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
                release_previous(cfg, ring, k)
            parts = epilogue_parts(tail(z), acc, (2 * m + wg, n), boxes)
            release_last(cfg, ring)
            problem.complete(acc)
            store_tile(parts, matrix_of(C, z), boxes, wg)
        wait_for_stores(boxes)


def hopper_pingpong(problem: Contraction, cfg: Hopper, tail: Tail) -> None:
    """Each consumer warpgroup takes every second tile: the epilogue of one overlaps the mainloop of the other."""
    A, B, C = problem.A, problem.B, problem.C
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    count = problem.count(bm, bn)
    problem.assume_aligned(stores=not cfg.single)
    assume(count < 1 << 24)
    mm = wgmma(A.dtype, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    boxes = begin_kernel(cfg, C.dtype)
    turns = Turns(2)
    tiles = persistent(problem.tiles(bm, bn), order=problem.order(cfg.order))
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(2 * count + 1, depth, cfg.stages)  # a warpgroup's own uses, and as many of the other's

    with role("load", warpgroup(0).elected, registers=24 if cfg.realloc else None):
        for m, n, *z in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(matrix_of(A, z).tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                    copy(matrix_of(B, z).tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=240 if cfg.realloc else None) as wg:
        acc = registers(f32, mm.C)
        ring.skip(wg * depth)  # the first tile is the other warpgroup's
        for m, n, *z in tiles.every(2, start=wg):
            with turns(wg):  # also makes the wait by parity unambiguous
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                    release_previous(cfg, ring, k)
            parts = epilogue_parts(tail(z), acc, (m, n), boxes)
            release_last(cfg, ring)
            ring.skip(depth)  # the other warpgroup's tile
            problem.complete(acc)
            store_tile(parts, matrix_of(C, z), boxes, wg)
        wait_for_stores(boxes)


def store_boxes(bn: int, *, whole: bool, dtype: DType = bf16, turns: int = 2) -> Tensor:
    """Shared memory of the epilogue, [warpgroup, box, row, column]: boxes of 64 columns, or of 32."""
    width = 64 if bn % 64 == 0 else 32
    return shared(dtype, (2, bn // width if whole else min(turns, bn // width), 64, width), swizzle=2 * width)


def epilogue_parts(epilogue: Epilogue, acc: Fragment, at: TileCoord, boxes: Tensor | None, widest: int = 64) -> Parts:
    """Split a 64-row accumulator into parts as wide as the boxes; epilogue operands are loaded one part ahead.

    at: coordinate of the accumulator among tiles of its shape. widest: without boxes, columns of a part at most.
    """
    narrow = next(each for each in (widest, 32) if acc.shape[1] % each == 0)
    width = narrow if boxes is None else int(boxes.shape[-1])
    count = acc.shape[1] // width

    def make(j: int) -> Part:
        place = (at[0], at[1] * count + j)
        return epilogue(acc.tile((64, width), (0, j)), place), place

    def each(part: Part) -> Iterator[Part]:
        for j in range(1, count):
            following = make(j)
            yield part
            part = following
        yield part

    return Parts(count, each(make(0)))


def store_by_tma(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """Store parts by TMA through this warpgroup's boxes, which rotate unless there is one per part."""
    turns, _, width = (int(extent) for extent in boxes.shape)
    if turns == parts.count:
        _store_whole(parts, target, boxes)
        return
    for j, (deferred, place) in enumerate(parts.each):
        box = boxes[j % turns]
        # The last store from this box must have read it; with an odd part count the first reuses the last one's box.
        left = 0 if turns == 1 or (j == 0 and parts.count % turns) else 1
        with elected():
            bulk.wait(pending=left, of="reads")
        sync()  # only now may the other 127 threads write the box
        copy(deferred().to(target.dtype), box, via=stmatrix.x4)
        fence("async proxy")  # by every writer, before the barrier
        sync()
        with elected():
            copy(box, target.tile((64, width), place), via=tma, edge=0)
            bulk.commit()


def store_by_elements(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """Store parts through this warpgroup's two boxes, so that a warp stores 64 neighbouring bytes at a time."""
    by = spread((_ROWS, _COLUMNS), threads=_THREADS, vector=1)
    sync()  # the last tile's last part has been read
    for j, (deferred, place) in enumerate(parts.each):
        box = boxes[j % 2]  # all threads have read part j - 2 of it, before the barrier of part j - 1
        copy(deferred(), box)
        sync()
        copy(load(box, by).to(target.dtype), target.tile((_ROWS, _COLUMNS), place), via=st_global_b16, edge=0)


def _store_whole(parts: Parts, target: Tensor, boxes: Tensor) -> None:
    """Fill all boxes, then one barrier, then store all."""
    width = int(boxes.shape[-1])
    with elected():
        bulk.wait(pending=0, of="reads")  # the stores of the last tile have read the boxes
    sync()
    places: list[TileCoord] = []
    for j, (deferred, place) in enumerate(parts.each):
        copy(deferred().to(target.dtype), boxes[j], via=stmatrix.x4)
        places.append(place)
    fence("async proxy")
    sync()
    with elected():
        for j, place in enumerate(places):
            copy(boxes[j], target.tile((64, width), place), via=tma, edge=0)
        bulk.commit()


# -- techniques that a configuration can switch off ----------------------------------------------------------


def begin_kernel(cfg: Hopper, dtype: DType) -> Tensor | None:
    """Allocate the epilogue's boxes, if it uses shared memory; disable PDL unless `early`."""
    if not cfg.pdl:
        no_pdl()
    if cfg.single:
        return shared(f32, (2, 2, _ROWS, _COLUMNS), swizzle=4 * _COLUMNS)
    return store_boxes(cfg.bn, whole=cfg.whole, dtype=dtype, turns=cfg.turns) if cfg.box else None


def tiles_of(problem: Contraction, cfg: Hopper) -> Iterable[tuple[Int, ...]]:
    """The tiles of this CTA: many if persistent, else one."""
    order = problem.order(cfg.order)
    if cfg.persistent:
        return persistent(problem.tiles(cfg.bm, cfg.bn), order=order)
    return [problem.tile_of_block(cfg.bm, cfg.bn, order)]


class InFlight(Protocol):
    """A configuration that says whether one wgmma stays in flight while the previous stage is released."""

    @property
    def flight(self) -> bool: ...


def release_previous(cfg: InFlight, ring: Ring, k: Int) -> None:
    """Release the stage of the previous wgmma; without one in flight, the stage of this one."""
    wgmma.wait(pending=1 if cfg.flight else 0)  # the wgmma has read its stage ...
    if not cfg.flight:
        ring.release()
        return
    with when(k > 0):
        ring.release()  # ... so release that stage


def release_last(cfg: InFlight, ring: Ring) -> None:
    """Release the stage of the wgmma that is still in flight after the loop."""
    if cfg.flight:
        wgmma.wait(pending=0)
        ring.release()


def store_tile(parts: Parts, target: Tensor, boxes: Tensor | None, wg: Int) -> None:
    """Store parts by TMA through the boxes of a warpgroup, or directly from registers."""
    if boxes is not None:
        (store_by_elements if boxes.dtype == f32 else store_by_tma)(parts, target, boxes[wg])
        return
    for deferred, place in parts.each:
        part = deferred().to(target.dtype)
        copy(part, target.tile((part.shape[0], part.shape[1]), place), edge=0)


def wait_for_stores(boxes: Tensor | None) -> None:
    """Wait until the TMA stores have read the boxes; they then complete without the CTA."""
    if boxes is not None and boxes.dtype != f32:
        with elected():
            bulk.wait(0, of="reads")
