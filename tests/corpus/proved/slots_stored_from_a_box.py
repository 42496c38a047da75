# verdict: proved
"""Slots are read into registers and released; bulk stores take them on from one box, waited for by their reads."""

from argus.language import (
    Tensor, assert_written_once, assume, barrier, bf16, block_id, bulk, ceil_div, copy, elected, fence, kernel, loop, registers,
    role, shared, sm_90a, spread, sync, tag, tma, warpgroup,
)


@kernel(target=sm_90a, threads=256)
def move(A: Tensor["M N", bf16], B: Tensor["M N", bf16]):
    (M, N), by = A.shape, spread((64, 16), threads=128, vector=8)
    tag(A, lambda m, n: dict(m=m, n=n))
    assume(N % 8 == 0)
    a = shared(bf16, (2, 64, 16), swizzle=32)
    box = shared(bf16, (64, 16), swizzle=32)
    full = barrier(1, of=2)
    empty = barrier(128, of=2)
    (m,) = block_id((ceil_div(M, 64),))
    count = ceil_div(N, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for n in loop(count):
            empty[n % 2].wait(n // 2 - 1)
            full[n % 2].arrive(bytes=64 * 16 * 2)
            copy(A.tile((64, 16), (m, n)), a[n % 2], via=tma, signal=full[n % 2], edge=0)

    with role("store", warpgroup(1), registers=232):
        x = registers(bf16, by)
        for n in loop(count):
            full[n % 2].wait(n // 2)
            copy(a[n % 2], x)
            empty[n % 2].arrive()
            with elected():
                bulk.wait(0, of="reads")
            sync()
            copy(x, box)
            fence("async proxy")
            sync()
            with elected():
                copy(box, B.tile((64, 16), (m, n)), via=tma, edge=0)
                bulk.commit()
        with elected():
            bulk.wait(0)
    assert_written_once(B, lambda m, n: dict(m=m, n=n))
