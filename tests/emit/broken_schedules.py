"""Small kernels whose schedule the compiler breaks, each in one way. None of them is proved."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

from argus.language import (
    Tensor,
    bf16,
    copy,
    exp2,
    f32,
    kernel,
    load,
    loop,
    mma,
    registers,
    shared,
    sm_90a,
    spread,
    sync,
    wgmma,
    zeros,
)

THREADS = 128
_COLUMNS = 64


@kernel(target=sm_90a, threads=THREADS)
def exponentials_under_products(X: Tensor["64 64", f32], Y: Tensor["64 64", f32], times: Tensor["T", f32]) -> None:
    """64 x 64 exponentials of a warpgroup between a product and the wait for it: 32 a thread."""
    mm = wgmma(bf16, n=_COLUMNS)
    a, b = shared(bf16, (64, 16), swizzle=32), shared(bf16, (_COLUMNS, 16), swizzle=32)
    scores, weights = registers(f32, mm.C), registers(f32, mm.C)
    weights[:] = load(X.tile((64, _COLUMNS), (0, 0)), mm.C)
    scores[:] = zeros(f32, mm.C)
    for _ in loop(times.shape[0]):
        mma(mm, scores, a, b)
        weights[:] = exp2(weights)
        wgmma.wait(0)
        weights[:] = weights + scores
    copy(weights, Y.tile((64, _COLUMNS), (0, 0)))


@kernel(target=sm_90a, threads=THREADS)
def exponentials_ahead_of_products(X: Tensor["64 64", f32], Y: Tensor["64 64", f32], times: Tensor["T", f32]) -> None:
    """The same with the product after the exponentials: nothing is meant to overlap."""
    mm = wgmma(bf16, n=_COLUMNS)
    a, b = shared(bf16, (64, 16), swizzle=32), shared(bf16, (_COLUMNS, 16), swizzle=32)
    scores, weights = registers(f32, mm.C), registers(f32, mm.C)
    weights[:] = load(X.tile((64, _COLUMNS), (0, 0)), mm.C)
    scores[:] = zeros(f32, mm.C)
    for _ in loop(times.shape[0]):
        weights[:] = exp2(weights)
        mma(mm, scores, a, b)
        wgmma.wait(0)
        weights[:] = weights + scores
    copy(weights, Y.tile((64, _COLUMNS), (0, 0)))


@kernel(target=sm_90a, threads=THREADS)
def products_read_in_flight(Y: Tensor["64 64", f32], times: Tensor["T", f32]) -> None:
    """An accumulator that is read while a product that adds to it is in flight."""
    mm = wgmma(bf16, n=_COLUMNS)
    a, b = shared(bf16, (64, 16), swizzle=32), shared(bf16, (_COLUMNS, 16), swizzle=32)
    scores = registers(f32, mm.C)
    scores[:] = zeros(f32, mm.C)
    for _ in loop(times.shape[0]):
        mma(mm, scores, a, b)
        copy(scores, Y.tile((64, _COLUMNS), (0, 0)))
    wgmma.wait(0)


@kernel(target=sm_90a, threads=THREADS)
def quotients(X: Tensor["M 128", f32], Y: Tensor["M 128", f32]) -> None:
    """A division of each element, in a loop."""
    by = spread((1, THREADS), threads=THREADS, vector=1)
    for m in loop(X.shape[0]):
        copy(1.0 / load(X.tile((1, THREADS), (m, 0)), by), Y.tile((1, THREADS), (m, 0)))


@kernel(target=sm_90a, threads=1024)
def crowded(X: Tensor["M 131072", f32], Y: Tensor["131072", f32]) -> None:
    """128 sums a thread, of whose registers there are 64."""
    by = spread((131072,), threads=1024, vector=4)
    sums = registers(f32, by)
    sums[:] = zeros(f32, by)
    for m in loop(X.shape[0]):
        sums[:] = sums * 0.5 + load(X[m].tile((131072,), (0,)), by)
        sync()
    copy(sums, Y.tile((131072,), (0,)))
