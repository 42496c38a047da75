# verdict: refuted I31
"""Shared memory is read without a wait for the `cp.async` that fills it."""

from argus.language import Tensor, assert_written_once, bf16, copy, cp_async, kernel, registers, shared, sm_90a, spread, sync, tag


@kernel(target=sm_90a, threads=128)
def staged(A: Tensor["64 64", bf16], C: Tensor["64 64", bf16]):
    tag(A, lambda m, k: dict(m=m, k=k))
    by = spread((64, 64), threads=128, vector=8)
    t = shared(bf16, (64, 64))
    copy(A, t, via=cp_async, by=by)
    sync()
    y = registers(bf16, by)
    copy(t, y)
    copy(y, C)
    assert_written_once(C, lambda m, k: dict(m=m, k=k))
