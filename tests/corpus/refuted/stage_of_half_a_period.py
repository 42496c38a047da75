# verdict: refuted I18
"""A stage is half a swizzle period; the swizzle depends on the address, so every other stage has another pattern."""

from argus.language import (
    Tensor, assert_written_once, assume, bf16, block_id, ceil_div, copy, cp_async, kernel, loop, registers, shared,
    sm_90a, spread, sync, tag,
)


@kernel(target=sm_90a, threads=32)
def move(A: Tensor["M N", bf16], B: Tensor["M N", bf16]):
    (M, N), by = A.shape, spread((4, 64), threads=32, vector=8)
    tag(A, lambda m, n: dict(m=m, n=n))
    assume(N % 8 == 0)
    tiles = shared(bf16, (2, 4, 64), swizzle=128)
    (m,) = block_id((ceil_div(M, 4),))
    x = registers(bf16, by)
    for n in loop(ceil_div(N, 64)):
        copy(A.tile((4, 64), (m, n)), tiles[n % 2], via=cp_async, by=by, edge=0)
        cp_async.commit()
        cp_async.wait(0)
        sync()
        copy(tiles[n % 2], x)
        copy(x, B.tile((4, 64), (m, n)), edge=0)
        sync()
    assert_written_once(B, lambda m, n: dict(m=m, n=n))
