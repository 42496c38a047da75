"""Split-K GEMM on MI300X, for few tiles: each block takes a part of K, and a second launch adds up the partial sums.

A program of two launches: f32 partial sums in a workspace, one matrix per split, then their sum.
"""

from __future__ import annotations

from attrs import frozen

from argus.kernels.schedules.cdna3_staged import Cdna3Staged, Step, assume_bounds, mainloop
from argus.kernels.schedules.contraction import Contraction
from argus.language import (
    Int,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    kernel,
    load,
    loop,
    minimum,
    program,
    span,
    spread,
    vmem,
    workspace,
    zeros,
)

_THREADS = 256
_ROWS = _COLUMNS = 64


@frozen
class Cdna3Split:
    """splits: parts of K, each with its own blocks. The other fields are those of `Cdna3Staged`."""

    bm: int = 128
    bn: int = 128
    bk: int = 32
    splits: int = 4
    buffers: int = 2
    guarded: bool = True
    unroll: int = 1
    target = gfx942

    @property
    def staged(self) -> Cdna3Staged:
        return Cdna3Staged(
            bm=self.bm,
            bn=self.bn,
            bk=self.bk,
            run=8,
            vector=8,
            swizzle=True,
            buffers=self.buffers,
            guarded=self.guarded,
            unroll=self.unroll,
        )


CONFIGS = {
    "split_2": Cdna3Split(splits=2),
    "split_4": Cdna3Split(),
    "split_8": Cdna3Split(splits=8),
    "small_4": Cdna3Split(bm=64, bn=64),
}


@kernel(target=gfx942, threads=_THREADS)
def partial_gemm(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["Z M N", f32], *, cfg: Cdna3Split
) -> None:
    """part[z] = A @ B^T over the z-th part of K."""
    problem, staged = Contraction(A, B, part[0]), cfg.staged
    assume_bounds(problem, staged)
    m, n, z = block_id((*problem.tiles(cfg.bm, cfg.bn), cfg.splits))
    low, high = span(z, cfg.splits, ceil_div(A.shape[1], cfg.bk))
    step = Step.create(problem, staged, m, n)
    mainloop(step, low, high)
    assert_covers(step.acc.tag.k, low * cfg.bk, minimum(A.shape[1], high * cfg.bk))
    copy(step.acc, part[z].tile((cfg.bm, cfg.bn), (m, n)), edge=0)
    assert_written_once(part, lambda _z, m, n: dict(m=m, n=n))


@kernel(target=gfx942, threads=_THREADS)
def reduce_splits(part: Tensor["Z M N", f32], C: Tensor["M N", bf16], *, depth: Int) -> None:
    """C = the sum of all partial sums."""
    parts, rows, columns = part.shape
    total = zeros(f32, spread((_ROWS, _COLUMNS), threads=_THREADS, vector=4))
    m, n = block_id((ceil_div(rows, _ROWS), ceil_div(columns, _COLUMNS)))
    assume(columns % 4 == 0, rows * columns < 1 << 40)
    for z in loop(parts):
        one = load(part[z].tile((_ROWS, _COLUMNS), (m, n)), total.layout, edge=0)
        vmem.wait(0)
        total += one
    assert_covers(total.tag.k, 0, depth)
    copy(total.to(bf16), C.tile((_ROWS, _COLUMNS), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@program(configs=CONFIGS)
def gemm_split(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Cdna3Split) -> None:
    (rows, depth), columns = A.shape, B.shape[0]
    part = workspace(f32, (cfg.splits, rows, columns))
    partial_gemm(A, B, part, cfg=cfg)
    reduce_splits(part, C, depth=depth)
