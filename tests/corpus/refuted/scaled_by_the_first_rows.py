# verdict: refuted I35
"""Every row tile uses the scales of the first rows."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, by_rows, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def scaled(A: Tensor["M K", bf16], B: Tensor["N K", bf16], alpha: Tensor["M", f32], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(alpha, lambda m: dict(m=m))
    assume(K >= 1, K % 8 == 0, N % 16 == 0, M % 64 == 0, (M // 64) * (N // 16) < 1 << 23)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((M // 64, N // 16), order=by_rows, blocks=2)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n in tiles:
            own = registers(f32, mm.C.axis(0))
            copy(alpha.tile((64,), (0,)), own, edge=0)
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy((acc * own).to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
