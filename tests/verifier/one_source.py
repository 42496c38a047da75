"""Kernels of one text for both targets: only `target=` tells them apart."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false
# Reason: formulas are written as in kernel files, with `X[n]` for an element.

from math import inf

from argus.language import (
    Fragment,
    IntLike,
    Swizzle,
    Tensor,
    assert_equals,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    exp,
    f32,
    gfx942,
    kernel,
    load,
    loop,
    maximum,
    mma,
    registers,
    rsqrt,
    shared,
    sm_90a,
    spread,
    sync,
    thread,
    total,
    warp_mma,
    where,
)

BOTH = (gfx942, sm_90a)
TILE, CHUNK, EPSILON = 512, 256, 1e-6


@kernel(target=BOTH, threads=128, waits="automatic")
def vector_add(X: Tensor["N", f32], Y: Tensor["N", f32], Z: Tensor["N", f32]) -> None:
    (N,) = X.shape
    (i,) = block_id((ceil_div(N, TILE),))
    by = spread((TILE,), vector=1)
    x = load(X.tile((TILE,), (i,)), by, edge=0)
    y = load(Y.tile((TILE,), (i,)), by, edge=0)
    copy(x + y, Z.tile((TILE,), (i,)), edge=0)
    assert_equals(Z, lambda n: X[n] + Y[n])


@kernel(target=BOTH, threads=128, waits="automatic")
def silu_mul(G: Tensor["N", bf16], U: Tensor["N", bf16], Y: Tensor["N", bf16]) -> None:
    (N,) = G.shape
    assume(N % 8 == 0)
    (i,) = block_id((ceil_div(N, 1024),))
    by = spread((1024,), vector=8)
    g = load(G.tile((1024,), (i,)), by, edge=0).to(f32)
    u = load(U.tile((1024,), (i,)), by, edge=0).to(f32)
    copy((g / (1.0 + exp(-g)) * u).to(bf16), Y.tile((1024,), (i,)), edge=0)
    assert_equals(Y, lambda n: G[n] / (1.0 + exp(-G[n])) * U[n])


@kernel(target=BOTH, warps=1, waits="automatic")
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]) -> None:
    R, N = X.shape
    assume(N >= 1)
    (r,) = block_id((R,))
    by = spread((CHUNK,), vector=1)

    def chunk(i: IntLike) -> Fragment:
        return load(X[r].tile((CHUNK,), (i,)), by, edge=-inf)

    high, low = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], low[:] = -inf, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        x = chunk(i)
        now = maximum(high, x.max(0, within=thread))
        guard = where(now == -inf, 0.0, now)
        low[:] = low * exp(high - guard) + exp(x - guard).sum(0, within=thread)
        high[:] = now
    top = high.max(0)
    whole = (low * exp(high - top)).sum(0)
    for i in loop(ceil_div(N, CHUNK)):
        copy(exp(chunk(i) - top) / whole, Y[r].tile((CHUNK,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: exp(X[r, n]) / total(lambda j: exp(X[r, j]), over=N))


@kernel(target=BOTH, warps=1, waits="automatic")
def rms_norm(X: Tensor["R N", bf16], W: Tensor["N", bf16], Y: Tensor["R N", bf16]) -> None:
    R, N = X.shape
    assume(N >= 1)
    (r,) = block_id((R,))
    by = spread((CHUNK,), vector=1)
    squares = registers(f32, by.partial(0))
    squares[:] = 0.0
    for i in loop(ceil_div(N, CHUNK)):
        x = load(X[r].tile((CHUNK,), (i,)), by, edge=0).to(f32)
        squares[:] = squares + (x * x).sum(0, within=thread)
    scale = rsqrt(squares.sum(0) / N + EPSILON)
    for i in loop(ceil_div(N, CHUNK)):
        x, w = (load(row.tile((CHUNK,), (i,)), by, edge=0) for row in (X[r], W))
        copy((x.to(f32) * scale * w.to(f32)).to(bf16), Y[r].tile((CHUNK,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] * rsqrt(total(lambda j: X[r, j] * X[r, j], over=N) / N + EPSILON) * W[n])


@kernel(target=BOTH, warps=1, waits="automatic")
def gemm_bias_relu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16]
) -> None:
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, N % 2 == 0)
    mm = warp_mma(bf16).over(waves=(1, 1), tile=(32, 32), k=32)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    for k in loop(ceil_div(K, 32)):
        copy(A.tile((32, 32), (m, k)), a, edge=0)
        copy(B.tile((32, 32), (n, k)), b, edge=0)
        mma(mm, acc, a, b, init=eq(k, 0))
    of_columns = load(bias.tile((32,), (n,)), mm.C.axis(1), edge=0)
    copy(maximum(acc + of_columns, 0.0).to(bf16), C.tile((32, 32), (m, n)), edge=0)
    assert_equals(C, lambda m, n: maximum(total(lambda k: A[m, k] * B[n, k], over=K) + bias[n], 0.0))


@kernel(target=BOTH, threads=128, waits="automatic")
def transpose(X: Tensor["M N", f32], Y: Tensor["N M", f32]) -> None:
    M, N = X.shape
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    by = spread((32, 32), vector=1)
    box = shared(f32, (32, 32), swizzle=Swizzle(5, 0, 5), banks=1)
    copy(load(X.tile((32, 32), (m, n)), by, edge=0), box)
    sync()
    copy(load(box.T, by), Y.tile((32, 32), (n, m)), edge=0)
    assert_equals(Y, lambda n, m: X[m, n])


@kernel(target=BOTH, warps=4, waits="automatic")
def gemm_in_shared_memory(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]) -> None:
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, N % 2 == 0)
    mm = warp_mma(bf16).over(waves=(2, 2), tile=(64, 64), k=32)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    by = spread((64, 32), vector=8)
    boxes = [shared(bf16, (64, 32)) for _ in range(2)]
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    for k in loop(ceil_div(K, 32)):
        loaded = [load(of.tile((64, 32), (row, k)), by, edge=0) for of, row in ((A, m), (B, n))]
        for each, box in zip(loaded, boxes, strict=True):
            copy(each, box)
        sync()
        copy(boxes[0], a)
        copy(boxes[1], b)
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_equals(C, lambda m, n: total(lambda k: A[m, k] * B[n, k], over=K))


KERNELS = (vector_add, silu_mul, softmax, rms_norm, gemm_bias_relu, transpose, gemm_in_shared_memory)
