# verdict: proved
"""Sums over the columns of exp(A B^T): each block adds up those of its tile, and a second launch adds the tiles'."""

from argus.language import (
    Ring, Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, elements, eq, exp, f32, kernel, load, loop, mma,
    program, registers, role, shared, sm_90a, spread, tma, total, warpgroup, wgmma, workspace,
)


@kernel(target=sm_90a, threads=256)
def multiply(A: Tensor["M K", bf16], B: Tensor["N K", bf16], part: Tensor["T M", f32]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, ceil_div(M, 64) * ceil_div(N, 128) < 1 << 24)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 128)))
    mm = wgmma(bf16, n=128)
    ring = Ring(4, a=shared(bf16, (64, 64), swizzle=128), b=shared(bf16, (128, 64), swizzle=128))
    depth = ceil_div(K, 64)
    with role("load", warpgroup(0).elected):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((64, 64), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((128, 64), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()
    with role("math", warpgroup(1)):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        of_tile = exp(acc).sum(1, where=128 * n + acc.index[1] < N)
        copy(of_tile, part[n].tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=128)
def add(part: Tensor["T M", f32], Y: Tensor["M", f32]):
    T, M = part.shape
    (m,) = block_id((ceil_div(M, 128),))
    found = registers(f32, spread((128,), threads=128, vector=1))
    found[:] = 0.0
    for t in loop(T):
        found[:] = found + load(part[t].tile((128,), (m,)), spread((128,), threads=128, vector=1), edge=0)
    copy(found, Y.tile((128,), (m,)), edge=0)


@program
def sums_of_rows(A: Tensor["M K", bf16], B: Tensor["N K", bf16], Y: Tensor["M", f32]):
    (M, K), (N, _) = A.shape, B.shape
    part = workspace(f32, (ceil_div(N, 128), M))
    multiply(A, B, part)
    add(part, Y)
    a, b = elements(A), elements(B)
    assert_equals(Y, lambda i: total(lambda j: exp(total(lambda k: a(i, k) * b(j, k), over=K)), over=N))
