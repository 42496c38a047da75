"""The MI300X schedule from a naive kernel upwards, one technique per field: all waves run in step.

Each field of the configuration is a technique that can be switched on alone. A planner begins at `Cdna3Staged()`, which
loads element by element, waits, multiplies, and has a barrier after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

from attrs import frozen

from argus.kernels.schedules.cdna3 import register_file
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
"""Bits of a swizzle: 8 chunks of 16 bytes span all banks."""


@frozen
class Cdna3Staged:
    """bm x bn tiles by waves[0] x waves[1] waves, bk of K per iteration, in one LDS buffer or two alternating ones.

    mfma: rows of the MFMA instruction, 32 or 16. run: contiguous elements along k per LDS read of a lane, 4 or 8.
    buffers: with 2, the next load overlaps the MFMAs. vector: elements per load of a thread; with 1, rows may have any
    length. swizzle: permute chunks of 16 bytes against bank conflicts. guarded: bounds are checked by the buffer
    descriptor instead of masks. direct: loads go to LDS without registers. group: rows of a super-tile that one XCD
    takes, 0 for the hardware's order. stagger: number of different values of k at which blocks begin, wrapping around;
    0 for none. unroll: unroll factor of the mainloop. priority: raise the priority of waves that multiply. pinned: the
    compiler moves no instruction across the MFMAs. agprs: accumulators are in AccVGPRs.
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

    @property
    def of_any_rows(self) -> bool:
        """Whether rows need no alignment: they are loaded element by element."""
        return self.vector == 1 and not self.direct


def cdna3_staged(problem: Contraction, cfg: Cdna3Staged) -> None:
    """One mainloop over k; with `stagger` two: from the block's start to the end, then from 0 to its start."""
    A, C = problem.A, problem.C
    assume_bounds(problem, cfg)
    counts = problem.tiles(cfg.bm, cfg.bn)
    m, n = remap_xcd(block_id, counts, group=cfg.group) if cfg.group else block_id(counts)
    depth = ceil_div(A.shape[-1], cfg.bk)
    step = Step.create(problem, cfg, m, n)
    if cfg.stagger:
        start = minimum((m + n) % cfg.stagger, depth)
        mainloop(step, start, depth)
        mainloop(step, 0, start)
    else:
        mainloop(step, 0, depth)
    problem.complete(step.acc)
    via = buffer_store if cfg.guarded else None
    copy(step.acc.to(C.dtype), C.tile((cfg.bm, cfg.bn), (m, n)), via=via, edge=0)


def assume_bounds(problem: Contraction, cfg: Cdna3Staged) -> None:
    A, B, C = problem.A, problem.B, problem.C
    assume(A.shape[1] >= 1)
    if not cfg.of_any_rows:
        assume(A.shape[1] % _CHUNK == 0)  # rows of 16-byte vectors
    if cfg.guarded or cfg.direct:
        assume(*(each.shape[0] * each.shape[1] <= (1 << 31) - 8 for each in (A, B, C)))  # a descriptor's span


def mainloop(step: Step, low: IntLike, high: Int) -> None:
    """The iterations [low, high): unrolled ones first, then the remainder."""
    cfg = step.cfg
    if cfg.buffers > 1:
        with when(low < high):
            step.fetch(low)
            step.store_to_lds(low)
        step.barrier()
    left = low
    if cfg.unroll > 1:
        trips = (high - low) // cfg.unroll
        left = low + cfg.unroll * trips
        for trip in loop(trips):
            for j in range(cfg.unroll):
                _iteration(step, low + cfg.unroll * trip + j, high, last=j == cfg.unroll - 1)
        step.barrier()
    if cfg.unroll == _PAIR:
        with when(left < high):
            _iteration(step, left, high, last=True)
        return
    for k in loop(left, high):
        _iteration(step, k, high, last=True)


def _iteration(step: Step, k: IntLike, high: Int, *, last: bool) -> None:
    """One iteration. last: it is the last of its unrolled group, so that the next one may not exist."""
    if step.cfg.buffers == 1:
        step.fetch(k)
        step.store_to_lds(k)
        step.barrier()
        step.multiply(k)
        sync()
        return
    with when(k + 1 < high) if last else nullcontext():
        step.fetch(k + 1)
    step.multiply(k)
    with when(k + 1 < high) if last else nullcontext():
        step.store_to_lds(k + 1)
    step.barrier()


@frozen
class Step:
    """The phases of an iteration. fetch: issue the loads. store_to_lds: write the tile to LDS. multiply: MFMAs."""

    cfg: Cdna3Staged
    acc: Fragment
    fetch: Callable[[IntLike], None]
    store_to_lds: Callable[[IntLike], None]
    multiply: Callable[[IntLike], None]

    @classmethod
    def create(cls, problem: Contraction, cfg: Cdna3Staged, m: Int, n: Int) -> Step:
        shapes = (cfg.bm, cfg.bk), (cfg.bn, cfg.bk)
        buffers = [_lds(problem, cfg, rows) for rows, _ in shapes]

        def tiles(k: IntLike) -> list[Tensor]:
            return [problem.A.tile(shapes[0], (m, k)), problem.B.tile(shapes[1], (n, k))]

        fetch, store_to_lds = (_direct_to_lds if cfg.direct else _through_registers)(cfg, tiles, buffers)
        mm = _instruction(cfg)
        acc = zeros(f32, mm.C, file=register_file(cfg.agprs))
        a, b = registers(problem.A.dtype, mm.A), registers(problem.B.dtype, mm.B)
        via = ds_read_b128 if cfg.run == _CHUNK else ds_read_b64

        def multiply(k: IntLike) -> None:
            copy(buffers[0][k % cfg.buffers], a, via=via)
            copy(buffers[1][k % cfg.buffers], b, via=via)
            lds.wait(0)
            with _scheduled(cfg):
                mma(mm, acc, a, b)

        return cls(cfg, acc, fetch, store_to_lds, multiply)

    def barrier(self) -> None:
        """Wait until the LDS writes of all waves are visible."""
        (vmem if self.cfg.direct else lds).wait(0)
        sync()


Moves = tuple[Callable[[IntLike], None], Callable[[IntLike], None]]
Tiles = Callable[[IntLike], list[Tensor]]


def _through_registers(cfg: Cdna3Staged, tiles: Tiles, buffers: list[Tensor]) -> Moves:
    """Loads by way of registers."""
    held = [
        registers(each.dtype, spread((int(each.shape[1]), cfg.bk), threads=cfg.threads, vector=max(2, cfg.vector)))
        for each in buffers
    ]
    family = buffer_load if cfg.guarded else global_load
    via = family[0] if cfg.vector == 1 else family

    def fetch(k: IntLike) -> None:
        for tile, to in zip(tiles(k), held, strict=True):
            copy(tile, to, via=via, edge=0)

    def store_to_lds(k: IntLike) -> None:
        vmem.wait(0)
        for each, to in zip(held, buffers, strict=True):
            copy(each, to[k % cfg.buffers])

    return fetch, store_to_lds


def _direct_to_lds(cfg: Cdna3Staged, tiles: Tiles, buffers: list[Tensor]) -> Moves:
    """Loads directly to LDS."""

    def fetch(k: IntLike) -> None:
        for tile, to in zip(tiles(k), buffers, strict=True):
            by = spread((int(to.shape[1]), cfg.bk), threads=cfg.threads, vector=2)
            copy(tile, to[k % cfg.buffers], via=buffer_load_lds, by=by, edge=0)

    def store_to_lds(k: IntLike) -> None:
        del k  # the loads themselves write LDS

    return fetch, store_to_lds


def _lds(problem: Contraction, cfg: Cdna3Staged, rows: int) -> Tensor:
    """LDS as [buffer, row, k]; the swizzle permutes the chunks of a row by the number of its 128-byte line.

    The remaining bank conflicts are declared, and so proved: none if lanes read 16 bytes, two-way if they read 8.
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
