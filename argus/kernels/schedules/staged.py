"""C = A @ B^T on Hopper from the first kernel that one writes, technique after technique: no ring, no tiles in turn.

Each field of the configuration is a technique that may be had alone: a planner begins at `Staged()`, which loads
element by element, waits, multiplies and meets.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import identity, parts_of, store_by_tma
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
"""Bytes of the slabs that rows lie in without a swizzle."""


@frozen
class Staged:
    """bm x bn tiles (bm a multiple of 64) by one warpgroup, bk of K a step, in `stages` buffers.

    vector: elements that a thread loads at once; of 1, rows of any length are taken. asynchronous: by `cp.async`, past
    the registers. tma: by the copy engine, which a warp of its own starts. swizzle: bytes over which chunks are
    permuted, 128, 64, 32, or 0 for none. group: rows of a super-tile, 0 for tiles by rows. box: a tile leaves through
    boxes in shared memory and the copy engine, not by stores of registers.
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
        """Whether rows of matrices may begin anywhere: they are loaded and stored element by element."""
        return self.vector == 1 and not (self.asynchronous or self.tma or self.box)


def hopper_staged(problem: Contraction, cfg: Staged) -> None:
    """The schedule of a configuration; the copy engine goes before `asynchronous`, and that before plain loads."""
    if cfg.of_any_rows:
        assume(problem.A.shape[-1] >= 1)
    else:
        problem.aligned()
    if cfg.tma:
        _by_the_copy_engine(problem, cfg)
    elif cfg.asynchronous:
        _past_the_registers(problem, cfg)
    else:
        _through_registers(problem, cfg)


def _through_registers(problem: Contraction, cfg: Staged) -> None:
    """Global to registers to shared memory; of several buffers, the next is loaded under the product on this one."""
    A, B, stages = problem.A, problem.B, cfg.stages
    a, b = _buffers(problem, cfg)
    leaving = _Leaving.made(problem, cfg)
    held = [registers(each.dtype, spread(_tile(each), threads=_THREADS, vector=max(2, cfg.vector))) for each in (a, b)]
    via = ld_global_b16 if cfg.vector == 1 else None
    m, n = _place(problem, cfg)
    depth = ceil_div(A.shape[-1], cfg.bk)
    acc = _sums(problem, cfg)

    def fetch(k: IntLike) -> None:
        copy(A.tile(_tile(a), (m, k)), held[0], via=via, edge=0)
        copy(B.tile(_tile(b), (n, k)), held[1], via=via, edge=0)

    def put(k: IntLike) -> None:
        copy(held[0], a[k % stages])
        copy(held[1], b[k % stages])
        fence("async proxy")  # by every writer, then the meeting

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
        sync()  # ... whole, also if each warp's wait speaks for this warp alone
    leaving.leave(acc, (m, n))


def _past_the_registers(problem: Contraction, cfg: Staged) -> None:
    """Groups of `cp.async`; of several buffers, as many groups but one are under way while a product runs."""
    A, B, stages = problem.A, problem.B, cfg.stages
    a, b = _buffers(problem, cfg)
    leaving = _Leaving.made(problem, cfg)
    by = [spread(_tile(each), threads=_THREADS, vector=cfg.vector) for each in (a, b)]
    m, n = _place(problem, cfg)
    depth = ceil_div(A.shape[-1], cfg.bk)
    acc = _sums(problem, cfg)

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
        sync()  # what came is there for all, and products on the buffer that is filled next are over
        _multiply(acc, a[k % stages], b[k % stages], k)
        if stages > 1:
            with when(k + stages - 1 < depth):
                start(k + stages - 1)
            cp_async.commit()
        wgmma.wait(0)
        if stages == 1:
            sync()
    leaving.leave(acc, (m, n))


def _by_the_copy_engine(problem: Contraction, cfg: Staged) -> None:
    """One thread of a warp beside the warpgroup starts copies; a buffer goes back when the product on it is over."""
    A, B, bm, bn, bk = problem.A, problem.B, cfg.bm, cfg.bn, cfg.bk
    span = cfg.swizzle or _CHUNK
    ring = Ring(cfg.stages, a=shared(A.dtype, (bm, bk), swizzle=span), b=shared(B.dtype, (bn, bk), swizzle=span))
    leaving = _Leaving.made(problem, cfg)
    m, n = _place(problem, cfg)
    depth = ceil_div(A.shape[-1], bk)
    problem.bounded(problem.count(bm, bn), depth, cfg.stages)
    with role("load", warp(_THREADS // _WARP).elected):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)
    with role("math", warpgroup(0)):
        acc = _sums(problem, cfg)
        for k in loop(depth):
            slot = ring.wait()
            _multiply(acc, slot.a, slot.b, k)
            wgmma.wait(0)
            ring.release()
        leaving.leave(acc, (m, n))


def _place(problem: Contraction, cfg: Staged) -> tuple[Int, ...]:
    """The tile of this block."""
    if not cfg.group:
        return block_id(problem.tiles(cfg.bm, cfg.bn))
    return problem.tile_of_block(cfg.bm, cfg.bn, super_tiled(cfg.group))


def _buffers(problem: Contraction, cfg: Staged) -> tuple[Tensor, Tensor]:
    """Of A and of B, [buffer, row, k]; a swizzle over whole rows leaves no bank conflict, which is declared."""
    span, banks = cfg.swizzle or _CHUNK, 1 if cfg.swizzle == 2 * cfg.bk else None
    a, b = (
        shared(each.dtype, (cfg.stages, rows, cfg.bk), swizzle=span, banks=banks)
        for each, rows in ((problem.A, cfg.bm), (problem.B, cfg.bn))
    )
    return a, b


def _tile(buffers: Tensor) -> tuple[int, int]:
    _, rows, columns = (int(extent) for extent in buffers.shape)
    return rows, columns


def _sums(problem: Contraction, cfg: Staged) -> list[Fragment]:
    """Of 64 rows each."""
    mm = wgmma(problem.A.dtype, n=cfg.bn)
    return [registers(f32, mm.C) for _ in range(cfg.bm // _ROWS)]


def _multiply(acc: Sequence[Fragment], a: Tensor, b: Tensor, k: Int) -> None:
    mm = wgmma(a.dtype, n=int(b.shape[0]))
    for i, each in enumerate(acc):
        mma(mm, each, a.tile((_ROWS, int(a.shape[1])), (i, 0)), b, init=eq(k, 0))


@frozen
class _Leaving:
    """How a tile goes to memory: by stores of registers, or through two boxes."""

    problem: Contraction
    cfg: Staged
    boxes: Tensor | None

    @classmethod
    def made(cls, problem: Contraction, cfg: Staged) -> _Leaving:
        if not cfg.box:
            return cls(problem, cfg, None)
        width = 64 if cfg.bn % 64 == 0 else 32
        return cls(problem, cfg, shared(problem.C.dtype, (min(2, cfg.bn // width), _ROWS, width), swizzle=2 * width))

    def leave(self, acc: Sequence[Fragment], at: tuple[Int, ...]) -> None:
        C, cfg, (m, n) = self.problem.C, self.cfg, at
        for i, each in enumerate(acc):
            row = len(acc) * m + i
            self.problem.complete(each)
            if self.boxes is None:
                via = st_global_b16 if cfg.of_any_rows else None
                copy(each.to(C.dtype), C.tile((_ROWS, cfg.bn), (row, n)), via=via, edge=0)
            else:
                store_by_tma(parts_of(identity, each, (row, n), self.boxes), C, self.boxes)
        if self.boxes is not None:
            with elected():
                bulk.wait(0, of="reads")  # what is on its way out arrives by itself
