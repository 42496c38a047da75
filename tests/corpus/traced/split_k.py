# verdict: proved
"""Split-K, C = A @ B^T: partial sums in a workspace plus a reduction kernel, or atomic adds in global memory.

Split z of the grid sums the K steps in span(z, splits, steps); if there are more splits than steps, some sum none and
store zeros. The atomic form needs C zeroed first, by a launch of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    add,
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
    role,
    shared,
    sm_90a,
    span,
    spread,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    workspace,
    zeros,
)


@frozen
class Hopper:
    """bm x bn output tile, bk of K per slot, K split into `splits` parts."""

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 4
    splits: int = 4
    target = sm_90a
    threads = 384


@frozen
class Plain:
    """One bm x bn tile per block, four elements per thread at a time."""

    bm: int = 64
    bn: int = 64
    target = sm_90a
    threads = 256


Store = Callable[[Fragment, Int, tuple[Int, Int]], None]


def contract(A: Tensor, B: Tensor, cfg: Hopper, splits: int, store: Store) -> None:
    """Sums one tile over the K steps of one split, then calls `store(acc, z, (row tile, n))`."""
    (M, K), N = A.shape, B.shape[0]
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    bm, bn, bk = cfg.bm, cfg.bn, cfg.bk
    assume(K >= 1, K % 8 == 0, N % 2 == 0)  # rows of 16 bytes; pairs of sums
    mm = wgmma(bf16, n=bn)
    ring = Ring(cfg.stages, a=shared(bf16, (bm, bk), swizzle=128), b=shared(bf16, (bn, bk), swizzle=128))
    m, n, z = block_id((ceil_div(M, bm), ceil_div(N, bn), splits))
    low, high = span(z, splits, ceil_div(K, bk))

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(low, high):
            with ring.fill() as slot:
                copy(A.tile((bm, bk), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((bn, bk), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = zeros(f32, mm.C)
        for _ in loop(low, high):
            slot = ring.wait()
            mma(mm, acc, slot.a.tile((64, bk), (wg, 0)), slot.b)
            wgmma.wait(0)
            ring.release()
        store(acc, z, (2 * m + wg, n))


@kernel
def partial(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["Z M N", f32], *, cfg: Hopper, splits: int
) -> None:
    """part[z] = A @ B^T over the k of split z."""
    K = A.shape[1]
    assume(eq(part.shape[0], splits), part.shape[1] * part.shape[2] < 1 << 40)

    def store(acc: Fragment, z: Int, at: tuple[Int, Int]) -> None:
        low, high = span(z, splits, ceil_div(K, cfg.bk))
        assert_covers(acc.tag.k, low * cfg.bk, minimum(K, high * cfg.bk))
        copy(acc, part[z].tile((64, cfg.bn), at), edge=0)

    contract(A, B, cfg, splits, store)
    assert_written_once(part, lambda z, m, n: dict(m=m, n=n))


@kernel
def combine(part: Tensor["Z M N", f32], C: Tensor["M N", bf16], *, cfg: Plain, depth: Int) -> None:
    """C = the sum of the partial sums, which together contain every k below `depth` once."""
    Z, M, N = part.shape
    tile = (cfg.bm, cfg.bn)
    by = spread(tile, threads=256, vector=4)
    total = zeros(f32, by)
    at = block_id((ceil_div(M, cfg.bm), ceil_div(N, cfg.bn)))
    assume(N % 4 == 0, Z * M * N < 1 << 40)
    for z in loop(Z):
        total += load(part[z].tile(tile, at), by, edge=0)
    assert_covers(total.tag.k, 0, depth)  # over the partial sums of the earlier launch
    copy(total.to(bf16), C.tile(tile, at), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))


@kernel
def zero(C: Tensor["M N", f32], *, cfg: Plain) -> None:
    """C = 0."""
    M, N = C.shape
    at = block_id((ceil_div(M, cfg.bm), ceil_div(N, cfg.bn)))
    assume(N % 4 == 0)
    copy(zeros(f32, spread((cfg.bm, cfg.bn), threads=256, vector=4)), C.tile((cfg.bm, cfg.bn), at), edge=0)


@kernel
def accumulate(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32], *, cfg: Hopper) -> None:
    """C += A @ B^T: each split adds its partial sum atomically."""

    def store(acc: Fragment, z: Int, at: tuple[Int, Int]) -> None:
        del z
        copy(acc, C.tile((64, cfg.bn), at), combine=add, edge=0)

    contract(A, B, cfg, cfg.splits, store)


@program(configs={"workspace": Hopper()})
def gemm_split(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Hopper) -> None:
    (M, K), N = A.shape, B.shape[0]
    part = workspace(f32, (cfg.splits, M, N))
    partial(A, B, part, cfg=cfg, splits=cfg.splits)
    combine(part, C, cfg=Plain(), depth=K)


@program(configs={"atomics": Hopper()})
def gemm_added(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32], *, cfg: Hopper) -> None:
    zero(C, cfg=Plain())
    accumulate(A, B, C, cfg=cfg)
