# verdict: proved
"""A branch of the producer divides by the number of rows of tiles from a tile's own on: its row is a quotient of the tile's number."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, bulk, by_rows, ceil_div, copy, elected, eq, f32, fence,
    kernel, loop, mma, persistent, registers, role, shared, sm_90a, stmatrix, sync, tag, tma, warpgroup, wgmma, when,
)


def by_tiles(number, counts):
    """The first row of tiles of every matrix, then the second."""
    rows, columns, matrices = counts
    m, b, n = by_rows(number, (rows, matrices, columns))
    return m, n, b


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["L M K", bf16], B: Tensor["L N K", bf16], C: Tensor["L M N", bf16]):
    (L, M, K), (_, N, _) = A.shape, B.shape
    tag(A, lambda l, m, k: dict(l=l, m=m, k=k))
    tag(B, lambda l, n, k: dict(l=l, n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 65536, N <= 65536, K <= 65536, L <= 64)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    boxes = shared(bf16, (2, 64, 16), swizzle=32)
    rows = ceil_div(M, 64)
    tiles = persistent((rows, ceil_div(N, 16), L), order=by_tiles, blocks=2)
    depth = ceil_div(K, 16)
    with role("load", warpgroup(0).elected, registers=24) as w:
        for m, n, b in tiles:
            with when(eq(n % (rows - m), 0)):
                fence("async proxy")
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A[b].tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B[b].tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()
    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n, b in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            with elected():
                bulk.wait(pending=0, of="reads")
            sync()
            copy(acc.to(bf16), boxes[0], via=stmatrix.x4)
            fence("async proxy")
            sync()
            with elected():
                copy(boxes[0], C[b].tile((64, 16), (m, n)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(C, lambda l, m, n: dict(l=l, m=m, n=n))
