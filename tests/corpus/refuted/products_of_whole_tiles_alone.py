# verdict: refuted I4
"""Tiles of sequences that lie back to back, of which each has as many as it has rows for whole ones."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, i32, kernel, loop, mma,
    promise, registers, role, scalar, segments, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], starts: Tensor["S", i32]):
    (M, K), (N, _) = A.shape, B.shape
    promise(starts, ascending=True, first=0, last=M)
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**14, N <= 2**14, starts.shape[0] >= 2, starts.shape[0] <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(1, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    depth = ceil_div(K, 16)

    def ends(s):
        return scalar(starts[s]), scalar(starts[s + 1])

    def counts(s):
        first, end = ends(s)
        return (end - first) // 64, ceil_div(N, 16)

    tiles = segments(starts.shape[0] - 1, counts, blocks=3, zigzag=True)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n, s in tiles:
            first, _ = ends(s)
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.rows(first).tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n, s in tiles:
            first, end = ends(s)
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.rows(first, end).tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
