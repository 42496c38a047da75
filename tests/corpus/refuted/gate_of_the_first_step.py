# verdict: refuted I1
"""Every K step multiplies the gate weights of the first step."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, by_rows, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tanh, tma, warpgroup, wgmma,
)


def silu(x):
    half = x * 0.5
    return half * tanh(half) + half


@kernel(target=sm_90a, threads=256)
def gated(
    A: Tensor["M K", bf16], W: Tensor["N K", bf16], V: Tensor["N K", bf16], C: Tensor["M N", bf16],
):
    (M, K), (N, _) = A.shape, W.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(W, lambda n, k: dict(n=n, k=k))
    tag(V, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 16 == 0, M % 64 == 0, (M // 64) * (N // 16) < 1 << 23)
    mm = wgmma(bf16, n=16)
    weights = shared(bf16, (16, 16), swizzle=32)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), w=weights, v=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((M // 64, N // 16), order=by_rows, blocks=2)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(W.tile((16, 16), (n, 0)), slot.w, via=tma, edge=0)
                    copy(V.tile((16, 16), (n, k)), slot.v, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc, gate = registers(f32, mm.C), registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, gate, slot.a, slot.w, init=eq(k, 0))
                mma(mm, acc, slot.a, slot.v, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            assert_covers(gate.tag.k, 0, K)
            for j in (0, 1):
                let, half = gate.tile((64, 8), (0, j)), acc.tile((64, 8), (0, j))
                copy((silu(let) * half).to(bf16), C.tile((64, 8), (m, 2 * n + j)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
