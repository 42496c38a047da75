# verdict: refuted I8
"""The release after the loop assumes at least one K slice: a tile without any releases a slot it does not hold."""

from argus.language import (
    Ring, Tensor, assert_written_once, assume, bf16, ceil_div, copy, f32, kernel, loop, minimum, mma, registers,
    role, shared, sm_90a, tag, tma, warpgroup, wgmma, when, zeros,
)


@kernel(target=sm_90a, threads=256)
def wedge(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K % 8 == 0, N % 8 == 0, N <= 16)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    count, depth = ceil_div(M, 64), ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m in loop(count):
            for k in loop(minimum(m, depth)):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (0, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m in loop(count):  # row tile m takes the first 16 m columns of A
            acc[:] = zeros(f32, mm.C)
            for k in loop(minimum(m, depth)):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b)
                wgmma.wait(1)
                with when(k > 0):
                    ring.release()
            wgmma.wait(0)
            ring.release()
            copy(acc.to(bf16), C.tile((64, 16), (m, 0)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
