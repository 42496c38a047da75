"""The Hopper schedule from a naive kernel upwards, one technique per field: one warpgroup, one tile per CTA.

Each field of the configuration is a technique that can be switched on alone. A planner begins at `Staged()`, which
loads element by element, waits, multiplies, and has a barrier after each step.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import identity
from argus.kernels.schedules.hopper import epilogue_parts, store_by_tma
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Ring,
    Tensor,
    assume,
    block_id,
    bulk,
    ceil_div,
    copy,
    cp_async,
    elected,
    eq,
    f32,
    fence,
    ld_global_b16,
    loop,
    mma,
    registers,
    role,
    shared,
    sm_90a,
    spread,
    st_global_b16,
    super_tiled,
    sync,
    tma,
    warp,
    warpgroup,
    wgmma,
    when,
)

_ROWS, _THREADS, _WARP = 64, 128, 32
_CHUNK = 16
"""Bytes: the span of rows without a swizzle."""


@frozen
class Staged:
    """bm x bn tiles (bm a multiple of 64) by one warpgroup, bk of K per iteration, in `stages` buffers.

    vector: elements per load of a thread; with 1, rows may have any length. asynchronous: loads by `cp.async` without
    registers. tma: loads by TMA, issued by a warp of its own. swizzle: span in bytes, 128, 64, 32, or 0 for none.
    group: rows of a super-tile, 0 for row-major tiles. box: the epilogue stores by TMA through shared memory, not from
    registers.
    """

    bm: int = 64
    bn: int = 64
    bk: int = 32
    stages: int = 1
    vector: int = 1
    asynchronous: bool = False
    tma: bool = False
    swizzle: int = 0
    group: int = 0
    box: bool = False
    target = sm_90a

    @property
    def threads(self) -> int:
        return _THREADS + (_WARP if self.tma else 0)

    @property
    def of_any_rows(self) -> bool:
        """Whether rows need no alignment: they are loaded and stored element by element."""
        return self.vector == 1 and not (self.asynchronous or self.tma or self.box)


def hopper_staged(problem: Contraction, cfg: Staged) -> None:
    """Apply the configuration's schedule; `tma` takes precedence over `asynchronous`, and that over plain loads."""
    if cfg.of_any_rows:
        assume(problem.A.shape[-1] >= 1)
    else:
        problem.assume_aligned()
    if cfg.tma:
        _by_tma(problem, cfg)
    elif cfg.asynchronous:
        _by_cp_async(problem, cfg)
    else:
        _by_registers(problem, cfg)


def _by_registers(problem: Contraction, cfg: Staged) -> None:
    """Global memory to registers to shared memory; with several buffers, the next load overlaps the wgmma."""
    A, B, stages = problem.A, problem.B, cfg.stages
    a, b = _buffers(problem, cfg)
    tile_store = _TileStore.create(problem, cfg)
    held = [registers(each.dtype, spread(_tile(each), threads=_THREADS, vector=max(2, cfg.vector))) for each in (a, b)]
    via = ld_global_b16 if cfg.vector == 1 else None
    m, n = _tile_of_block(problem, cfg)
    depth = ceil_div(A.shape[-1], cfg.bk)
    acc = _accumulators(problem, cfg)

    def fetch(k: IntLike) -> None:
        copy(A.tile(_tile(a), (m, k)), held[0], via=via, edge=0)
        copy(B.tile(_tile(b), (n, k)), held[1], via=via, edge=0)

    def put(k: IntLike) -> None:
        copy(held[0], a[k % stages])
        copy(held[1], b[k % stages])
        fence("async proxy")  # by every writer, before the barrier

    if stages > 1:
        fetch(0)
        put(0)
        sync()
    for k in loop(depth):
        if stages == 1:
            fetch(k)
            put(k)
            sync()
            _multiply(acc, a[0], b[0], k)
        else:
            with when(k + 1 < depth):
                fetch(k + 1)
            _multiply(acc, a[k % stages], b[k % stages], k)
            with when(k + 1 < depth):
                put(k + 1)
        wgmma.wait(0)  # the buffer has been read ...
        sync()  # ... by all warps, even if each warp's wait covers only that warp
    tile_store.store(acc, (m, n))


def _by_cp_async(problem: Contraction, cfg: Staged) -> None:
    """Loads by groups of `cp.async`; with several buffers, all groups but one are in flight during a wgmma."""
    A, B, stages = problem.A, problem.B, cfg.stages
    a, b = _buffers(problem, cfg)
    tile_store = _TileStore.create(problem, cfg)
    by = [spread(_tile(each), threads=_THREADS, vector=cfg.vector) for each in (a, b)]
    m, n = _tile_of_block(problem, cfg)
    depth = ceil_div(A.shape[-1], cfg.bk)
    acc = _accumulators(problem, cfg)

    def start(k: IntLike) -> None:
        copy(A.tile(_tile(a), (m, k)), a[k % stages], via=cp_async, by=by[0], edge=0)
        copy(B.tile(_tile(b), (n, k)), b[k % stages], via=cp_async, by=by[1], edge=0)

    for k in range(stages - 1):
        with when(k < depth):
            start(k)
    if stages > 1:
        cp_async.commit()
        cp_async.wait(0)
    for k in loop(depth):
        if stages == 1:
            start(k)
            cp_async.commit()
        cp_async.wait(max(0, stages - 2))
        fence("async proxy")
        sync()  # all threads' copies have arrived, and the wgmma on the buffer to be filled next is complete
        _multiply(acc, a[k % stages], b[k % stages], k)
        if stages > 1:
            with when(k + stages - 1 < depth):
                start(k + stages - 1)
            cp_async.commit()
        wgmma.wait(0)
        if stages == 1:
            sync()
    tile_store.store(acc, (m, n))


def _by_tma(problem: Contraction, cfg: Staged) -> None:
    """Loads by TMA, issued by one thread of an extra warp; a stage is released when its wgmma is complete."""
    A, B, bm, bn, bk = problem.A, problem.B, cfg.bm, cfg.bn, cfg.bk
    span = cfg.swizzle or _CHUNK
    ring = Ring(cfg.stages, a=shared(A.dtype, (bm, bk), swizzle=span), b=shared(B.dtype, (bn, bk), swizzle=span))
    tile_store = _TileStore.create(problem, cfg)
    m, n = _tile_of_block(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    problem.assume_ring_bounds(problem.count(bm, bn), depth, cfg.stages)
    with role("load", warp(_THREADS // _WARP).elected):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
    with role("math", warpgroup(0)):
        acc = _accumulators(problem, cfg)
        for k in loop(depth):
            slot = ring.wait()
            _multiply(acc, slot.a, slot.b, k)
            wgmma.wait(0)
            ring.release()
        tile_store.store(acc, (m, n))


def _tile_of_block(problem: Contraction, cfg: Staged) -> tuple[Int, ...]:
    """The tile of this block."""
    if not cfg.group:
        return block_id(problem.tiles(cfg.bm, cfg.bn))
    return problem.tile_of_block(cfg.bm, cfg.bn, super_tiled(cfg.group))


def _buffers(problem: Contraction, cfg: Staged) -> tuple[Tensor, Tensor]:
    """Buffers of A and B, [buffer, row, k]; a swizzle over whole rows is declared free of bank conflicts."""
    span, banks = cfg.swizzle or _CHUNK, 1 if cfg.swizzle == 2 * cfg.bk else None
    a, b = (
        shared(each.dtype, (cfg.stages, rows, cfg.bk), swizzle=span, banks=banks)
        for each, rows in ((problem.A, cfg.bm), (problem.B, cfg.bn))
    )
    return a, b


def _tile(buffers: Tensor) -> tuple[int, int]:
    _, rows, columns = (int(extent) for extent in buffers.shape)
    return rows, columns


def _accumulators(problem: Contraction, cfg: Staged) -> list[Fragment]:
    """The accumulators, of 64 rows each."""
    mm = wgmma(problem.A.dtype, n=cfg.bn)
    return [registers(f32, mm.C) for _ in range(cfg.bm // _ROWS)]


def _multiply(acc: Sequence[Fragment], a: Tensor, b: Tensor, k: Int) -> None:
    mm = wgmma(a.dtype, n=int(b.shape[0]))
    for i, each in enumerate(acc):
        mma(mm, each, a.tile((_ROWS, int(a.shape[1])), (i, 0)), b, init=eq(k, 0))


@frozen
class _TileStore:
    """The epilogue: stores a tile from registers, or by TMA through two boxes."""

    problem: Contraction
    cfg: Staged
    boxes: Tensor | None

    @classmethod
    def create(cls, problem: Contraction, cfg: Staged) -> _TileStore:
        if not cfg.box:
            return cls(problem, cfg, None)
        width = 64 if cfg.bn % 64 == 0 else 32
        return cls(problem, cfg, shared(problem.C.dtype, (min(2, cfg.bn // width), _ROWS, width), swizzle=2 * width))

    def store(self, acc: Sequence[Fragment], at: tuple[Int, ...]) -> None:
        C, cfg, (m, n) = self.problem.C, self.cfg, at
        for i, each in enumerate(acc):
            row = len(acc) * m + i
            self.problem.complete(each)
            if self.boxes is None:
                via = st_global_b16 if cfg.of_any_rows else None
                copy(each.to(C.dtype), C.tile((_ROWS, cfg.bn), (row, n)), via=via, edge=0)
            else:
                store_by_tma(epilogue_parts(identity, each, (row, n), self.boxes), C, self.boxes)
        if self.boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # the stores have read the boxes; they complete without the CTA
