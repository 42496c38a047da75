"""C = A @ B^T on Hopper where tiles are few and deep: parts of K by blocks of their own, then a launch that adds up."""

from __future__ import annotations

from attrs import frozen

from argus.kernels.contraction import Contraction, slot_for
from argus.language import (
    Int,
    Ring,
    Tensor,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    kernel,
    load,
    loop,
    minimum,
    mma,
    program,
    registers,
    role,
    sm_90a,
    spread,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    workspace,
)


@frozen
class Parts:
    """bm x bn tiles, each by `splits` blocks that take as many parts of K, bk of it a slot."""

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 7
    splits: int = 8
    target = sm_90a
    threads = 384


@frozen
class Adding:
    """Rows and columns of C that a block adds up, four side by side a thread."""

    rows: int = 8
    columns: int = 128
    target = sm_90a
    threads = 256


@kernel
def partial(A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["Z M N", f32], *, cfg: Parts) -> None:
    """part[z] = A @ B^T over part z of K: as many slots for every part; those beyond the end of K are zeros."""
    problem = Contraction(A, B, part)
    bm, bn, bk, splits = cfg.bm, cfg.bn, cfg.bk, cfg.splits
    rows, columns = ceil_div(A.shape[0], bm), ceil_div(B.shape[0], bn)
    problem.aligned()
    assume(eq(part.shape[0], splits), rows * columns < 1 << 20)
    mm = wgmma(bf16, n=bn)
    ring = Ring(cfg.stages, a=slot_for(A, bm, bk), b=slot_for(B, bn, bk))
    z, m, n = block_id((splits, rows, columns))
    depth = ceil_div(A.shape[-1], bk * splits)
    problem.bounded(rows * columns * splits, depth, cfg.stages)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((bm, bk), (m, z * depth + k)), slot.a, via=tma, edge=0)
                copy(B.tile((bn, bk), (n, z * depth + k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b, init=eq(k, 0))
            wgmma.wait(pending=1)  # k - 1 has finished reading its slot ...
            with when(k > 0):
                ring.release()  # ... which goes back
        wgmma.wait(pending=0)
        ring.release()
        assert_covers(acc.tag.k, z * depth * bk, minimum(A.shape[-1], (z + 1) * depth * bk))
        copy(acc, part[z].tile((64, bn), (2 * m + wg, n)), edge=0)
    assert_written_once(part, lambda _, m, n: dict(m=m, n=n))


@kernel
def combine(part: Tensor["Z M N", f32], C: Tensor["M N", bf16], *, cfg: Adding, splits: int, depth: Int) -> None:
    """C = the sum of the parts, which together hold every k below `depth` once."""
    _, M, N = part.shape
    tile = (cfg.rows, cfg.columns)
    by = spread(tile, threads=cfg.threads, vector=4)
    at = block_id((ceil_div(M, cfg.rows), ceil_div(N, cfg.columns)))
    assume(eq(part.shape[0], splits), N % 4 == 0, splits * M * N < 1 << 40)
    total = load(part[0].tile(tile, at), by, edge=0)
    for z in range(1, splits):
        total = total + load(part[z].tile(tile, at), by, edge=0)
    assert_covers(total.tag.k, 0, depth)  # of the launches before together
    copy(total.to(bf16), C.tile(tile, at), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


CONFIGS = {f"parts_{splits}": Parts(splits=splits) for splits in (2, 4, 8, 16, 32)}


@program(configs=CONFIGS)
def gemm_parts(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Parts) -> None:
    """C = A @ B^T by way of f32 sums of each part of K."""
    (M, K), N = A.shape, B.shape[0]
    part = workspace(f32, (cfg.splits, M, N))
    partial(A, B, part, cfg=cfg)
    combine(part, C, cfg=Adding(), splits=cfg.splits, depth=K)
