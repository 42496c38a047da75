# verdict: proved
"""Mixture of experts on Hopper: each 128 rows of A use the expert that owns them; fp8 with one scale per 128 k.

C[m, n] = sum over k of A[m, k] SA[k // 128, m] * W[x, n, k] SW[x, n // 128, k // 128], x = expert[m // 128]; blocks of
rows with expert -1 are skipped. wgmma sums 128 k at a time; each partial sum is scaled and added to C's sum in f32.
"""

from __future__ import annotations

from attrs import frozen

from argus.language import (
    Fragment,
    Ring,
    Tensor,
    assert_covers,
    assert_relation,
    assert_written_once,
    assume,
    bf16,
    bulk,
    bulk_copy,
    by_columns,
    copy,
    e4m3,
    elected,
    eq,
    f32,
    fence,
    i32,
    kernel,
    load,
    loop,
    mma,
    persistent,
    promise,
    registers,
    role,
    scalar,
    shared,
    sm_90a,
    stmatrix,
    sync,
    tag,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
)


@frozen
class Hopper:
    """Number of slots of the ring."""

    stages: int = 5
    target = sm_90a
    threads = 384


def store_by_tma(acc: Fragment, target: Tensor, boxes: Tensor) -> None:
    """Stores 64 rows to global memory, 64 columns at a time, through this warpgroup's two alternating boxes."""
    for j in range(acc.shape[1] // 64):
        box, part = boxes[j % 2], target.tile((64, 64), (0, j))
        with elected():
            bulk.wait(pending=1, of="reads")
        sync()
        copy(acc.tile((64, 64), (0, j)).to(bf16), box, via=stmatrix.x4)
        fence("async proxy")
        sync()
        with elected():
            copy(box, part, via=tma, edge=0)
            bulk.commit()


@kernel(cluster=(1, 1), configs={"fp8": Hopper()})
def grouped_gemm(
    A: Tensor["M K", e4m3],
    SA: Tensor["KB M", f32],
    W: Tensor["G N K", e4m3],
    SW: Tensor["G NB KB", f32],
    expert: Tensor["MB", i32],  # noqa: UP037 reason: the name of a size
    C: Tensor["M N", bf16],
    *,
    cfg: Hopper,
) -> None:
    (M, K), (G, N, _), (MB,) = A.shape, W.shape, expert.shape
    promise(expert, lambda e: (e == -1) | ((0 <= e) & (e < G)))  # assumed here, checked at launch
    assume(K % 128 == 0, N % 128 == 0, eq(M, 128 * MB), eq(K, 128 * SA.shape[0]), eq(N, 128 * SW.shape[1]))
    assume(MB * (N // 128) < 1 << 24)  # the number of tiles then fits 32 bits
    assume(MB * (N // 128) * (K // 128) < 1 << 32)  # ring uses: with five slots the counter must not wrap
    assume(G * (N * K) < 1 << 63)  # bytes of W
    tag(A, lambda m, k: dict(x=expert[m // 128], m=m, k=k))
    tag(SA, lambda kb, m: dict(m=m, kb=kb))
    tag(W, lambda g, n, k: dict(x=g, n=n, k=k))
    tag(SW, lambda g, nb, kb: dict(x=g, nb=nb, kb=kb))
    mm = wgmma(e4m3, n=128)
    ring = Ring(
        cfg.stages,
        a=shared(e4m3, (128, 128), swizzle=128),
        w=shared(e4m3, (128, 128), swizzle=128),
        sa=shared(f32, (128,)),
    )
    boxes = shared(bf16, (2, 2, 64, 64), swizzle=128)
    tiles, depth = persistent((MB, N // 128), order=by_columns), K // 128

    with role("load", warpgroup(0).elected, registers=40):
        for i, n in tiles:
            x = scalar(expert[i])  # read-only data: the term expert[i], equal in both roles
            with when(x >= 0):
                for k in loop(depth):
                    with ring.fill() as slot:
                        copy(A.tile((128, 128), (i, k)), slot.a, via=tma)
                        copy(W[x].tile((128, 128), (n, k)), slot.w, via=tma)
                        copy(SA[k].tile((128,), (i,)), slot.sa, via=bulk_copy)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        part, acc = registers(f32, mm.C), registers(f32, mm.C)
        for i, n in tiles:
            x = scalar(expert[i])
            with when(x >= 0):
                acc[:] = 0.0
                for k in loop(depth):
                    slot = ring.wait()
                    mma(mm, part, slot.a.tile((64, 128), (wg, 0)), slot.w, init=True)
                    rows = load(slot.sa.tile((64,), (wg,)), mm.C.axis(0))  # ordinary reads of the slot
                    cols = load(SW[x, n, k], mm.C.axis())  # one scale for all columns
                    wgmma.wait(0)
                    ring.release()
                    assert_relation(
                        part, rows, cols, lambda p, r, c: eq(r.kb, p.k // 128) & eq(c.nb, p.n // 128)
                    )  # the proof compares their tags m, x and kb
                    acc += part * (rows * cols)
                assert_covers(acc.tag.k, 0, K)
                store_by_tma(acc, C.tile((64, 128), (2 * i + wg, n)), boxes[wg])
        with elected():
            bulk.wait(0)
    assert_written_once(
        C, lambda m, n: dict(x=expert[m // 128], m=m, n=n), where=lambda m, n: scalar(expert[m // 128]) >= 0
    )
