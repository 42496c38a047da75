"""C = A @ B^T on MI300X from the first kernel that one writes, one technique after the other: all waves in step.

Each field of the configuration is a technique that may be had alone: a planner begins at `Cdna3Staged()`, which loads
element by element, waits, multiplies and meets.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

from attrs import frozen

from argus.kernels.schedules.cdna3 import file_of
from argus.kernels.schedules.contraction import Contraction
from argus.language import (
    Fragment,
    Int,
    IntLike,
    Swizzle,
    Tensor,
    TiledMma,
    assume,
    block_id,
    buffer_load,
    buffer_load_lds,
    buffer_store,
    ceil_div,
    copy,
    ds_read_b64,
    ds_read_b128,
    f32,
    gfx942,
    global_load,
    lds,
    loop,
    mfma,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_bf16,
    minimum,
    mma,
    priority,
    registers,
    remap_xcd,
    sched_barrier,
    shared,
    spread,
    sync,
    vmem,
    when,
    zeros,
)

_WAVE, _CHUNK = 64, 8
_PAIR = 2
_MOST_BITS = 3
"""Of a swizzle: 8 chunks of 16 bytes are a line of all banks."""


@frozen
class Cdna3Staged:
    """bm x bn tiles by waves[0] x waves[1] waves, bk of K a step, in one buffer of LDS or two that take turns.

    mfma: rows of the matrix instruction, 32 or 16. run: neighbours along k that a lane reads at once, 4 or 8.
    buffers: 2 loads the next step under the products of this one. vector: elements that a thread loads at once; of 1,
    rows of any length are taken. swizzle: chunks of 16 bytes permuted, against bank conflicts. guarded: addresses are
    checked by the buffer's descriptor and not by masks. direct: loads go past the registers. group: rows of a band of
    tiles that one die takes, 0 for the hardware's order. stagger: blocks begin at as many different steps of k, and
    wrap around; 0 for all at the first. unroll: steps written out in a trip of the loop. priority: waves that multiply
    come first. pinned: the compiler moves nothing across products. agprs: sums are in accumulation registers.
    """

    bm: int = 64
    bn: int = 64
    bk: int = 32
    waves: tuple[int, ...] = (2, 2)
    mfma: int = 32
    run: int = 4
    buffers: int = 1
    vector: int = 1
    swizzle: bool = False
    guarded: bool = False
    direct: bool = False
    group: int = 0
    stagger: int = 0
    unroll: int = 1
    priority: bool = False
    pinned: bool = False
    agprs: bool = False
    target = gfx942

    @property
    def threads(self) -> int:
        return _WAVE * self.waves[0] * self.waves[1]


def cdna3_staged(problem: Contraction, cfg: Cdna3Staged) -> None:
    """One walk over k, or two where a block begins in the middle: from there to the end, then what came before."""
    A, C = problem.A, problem.C
    bounded(problem, cfg)
    counts = problem.tiles(cfg.bm, cfg.bn)
    m, n = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    depth = ceil_div(A.shape[-1], cfg.bk)
    step = Step.made(problem, cfg, m, n)
    if cfg.stagger:
        start = minimum((m + n) % cfg.stagger, depth)
        walk(step, start, depth)
        walk(step, 0, start)
    else:
        walk(step, 0, depth)
    problem.complete(step.acc)
    via = buffer_store if cfg.guarded else None
    copy(step.acc.to(C.dtype), C.tile((cfg.bm, cfg.bn), (m, n)), via=via, edge=0)


def bounded(problem: Contraction, cfg: Cdna3Staged) -> None:
    A, B, C = problem.A, problem.B, problem.C
    assume(A.shape[1] >= 1)
    if cfg.vector > 1 or cfg.direct:
        assume(A.shape[1] % _CHUNK == 0)  # rows of 16-byte vectors
    if cfg.guarded or cfg.direct:
        assume(*(each.shape[0] * each.shape[1] < 1 << 31 for each in (A, B, C)))  # a buffer descriptor spans 4 GiB


def walk(step: Step, low: IntLike, high: Int) -> None:
    """All steps of [low, high): trips of several written out, then those that are left, one by one."""
    cfg = step.cfg
    if cfg.buffers > 1:
        with when(low < high):
            step.fetch(low)
            step.land(low)
        step.meet()
    left = low
    if cfg.unroll > 1:
        trips = (high - low) // cfg.unroll
        left = low + cfg.unroll * trips
        for trip in loop(trips):
            for j in range(cfg.unroll):
                _one(step, low + cfg.unroll * trip + j, high, last=j == cfg.unroll - 1)
        step.meet()
    if cfg.unroll == _PAIR:
        with when(left < high):
            _one(step, left, high, last=True)
        return
    for k in loop(left, high):
        _one(step, k, high, last=True)


def _one(step: Step, k: IntLike, high: Int, *, last: bool) -> None:
    """last: of those written out, so that there need not be another."""
    if step.cfg.buffers == 1:
        step.fetch(k)
        step.land(k)
        step.meet()
        step.multiply(k)
        sync()
        return
    with when(k + 1 < high) if last else nullcontext():
        step.fetch(k + 1)
    step.multiply(k)
    with when(k + 1 < high) if last else nullcontext():
        step.land(k + 1)
    step.meet()


@frozen
class Step:
    """What a step along k is made of. fetch: loads are begun. land: what was loaded is put into LDS."""

    cfg: Cdna3Staged
    acc: Fragment
    fetch: Callable[[IntLike], None]
    land: Callable[[IntLike], None]
    multiply: Callable[[IntLike], None]

    @classmethod
    def made(cls, problem: Contraction, cfg: Cdna3Staged, m: Int, n: Int) -> Step:
        shapes = (cfg.bm, cfg.bk), (cfg.bn, cfg.bk)
        buffers = [_lds(problem, cfg, rows) for rows, _ in shapes]

        def tiles(k: IntLike) -> list[Tensor]:
            return [problem.A.tile(shapes[0], (m, k)), problem.B.tile(shapes[1], (n, k))]

        fetch, land = (_direct if cfg.direct else _held)(cfg, tiles, buffers)
        mm = _instruction(cfg)
        acc = zeros(f32, mm.C, file=file_of(cfg.agprs))
        a, b = registers(problem.A.dtype, mm.A), registers(problem.B.dtype, mm.B)
        via = ds_read_b128 if cfg.run == _CHUNK else ds_read_b64

        def multiply(k: IntLike) -> None:
            copy(buffers[0][k % cfg.buffers], a, via=via)
            copy(buffers[1][k % cfg.buffers], b, via=via)
            lds.wait(0)
            with _scheduled(cfg):
                mma(mm, acc, a, b)

        return cls(cfg, acc, fetch, land, multiply)

    def meet(self) -> None:
        """What this wave has put into LDS is there, and that of all others."""
        (vmem if self.cfg.direct else lds).wait(0)
        sync()


Moves = tuple[Callable[[IntLike], None], Callable[[IntLike], None]]
Tiles = Callable[[IntLike], list[Tensor]]


def _held(cfg: Cdna3Staged, tiles: Tiles, buffers: list[Tensor]) -> Moves:
    """Through registers."""
    held = [
        registers(each.dtype, spread((int(each.shape[1]), cfg.bk), threads=cfg.threads, vector=max(2, cfg.vector)))
        for each in buffers
    ]
    family = buffer_load if cfg.guarded else global_load
    via = family[0] if cfg.vector == 1 else family

    def fetch(k: IntLike) -> None:
        for tile, to in zip(tiles(k), held, strict=True):
            copy(tile, to, via=via, edge=0)

    def land(k: IntLike) -> None:
        vmem.wait(0)
        for each, to in zip(held, buffers, strict=True):
            copy(each, to[k % cfg.buffers])

    return fetch, land


def _direct(cfg: Cdna3Staged, tiles: Tiles, buffers: list[Tensor]) -> Moves:
    """Past the registers."""

    def fetch(k: IntLike) -> None:
        for tile, to in zip(tiles(k), buffers, strict=True):
            by = spread((int(to.shape[1]), cfg.bk), threads=cfg.threads, vector=2)
            copy(tile, to[k % cfg.buffers], via=buffer_load_lds, by=by, edge=0)

    def land(k: IntLike) -> None:
        del k  # they land by themselves

    return fetch, land


def _lds(problem: Contraction, cfg: Cdna3Staged, rows: int) -> Tensor:
    """[buffer, row, k]; chunks of a row are permuted by the number of the line of banks that it lies in.

    What is left of conflicts is declared, and so proved: none where lanes read 16 bytes, two ways where they read 8.
    """
    bits = min(_MOST_BITS, (cfg.bk // _CHUNK).bit_length() - 1)
    swizzle = Swizzle(bits, _MOST_BITS, _MOST_BITS) if cfg.swizzle else None
    degree = (1 if cfg.run == _CHUNK else 2) if cfg.swizzle else None
    return shared(problem.A.dtype, (cfg.buffers, rows, cfg.bk), swizzle=swizzle, banks=degree)


def _instruction(cfg: Cdna3Staged) -> TiledMma:
    atom = {32: mfma_f32_32x32x8_bf16, 16: mfma_f32_16x16x16_bf16}[cfg.mfma]
    return mfma(atom).over(waves=(cfg.waves[0], cfg.waves[1]), tile=(cfg.bm, cfg.bn), k=cfg.bk, k_run=cfg.run)


@contextmanager
def _scheduled(cfg: Cdna3Staged) -> Generator[None]:
    if cfg.pinned:
        sched_barrier()
    if cfg.priority:
        with priority(1):
            yield
    else:
        yield
    if cfg.pinned:
        sched_barrier()
