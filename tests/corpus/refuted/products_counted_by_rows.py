# verdict: refuted I4
"""The batch index is computed from the tiles of one row instead of those of a whole product."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, by_rows, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


def one_by_one(number, counts):
    rows, columns, batch = counts
    return *by_rows(number % (rows * columns), (rows, columns)), number // columns


@kernel(target=sm_90a, threads=256)
def batched(A: Tensor["Z M K", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16]):
    (Z, M, K), N = A.shape, B.shape[1]
    tag(A, lambda z, m, k: dict(z=z, m=m, k=k))
    tag(B, lambda z, n, k: dict(z=z, n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, Z <= 2**10, M <= 2**18, N <= 2**18)
    assume(Z * ceil_div(M, 64) * ceil_div(N, 16) < 2**24)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16), Z), order=one_by_one, blocks=2)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n, z in tiles:
            for k in loop(ceil_div(K, 16)):
                with ring.fill() as slot:
                    copy(A[z].tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B[z].tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n, z in tiles:
            for k in loop(ceil_div(K, 16)):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C[z].tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda z, m, n: dict(z=z, m=m, n=n))
