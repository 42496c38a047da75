# verdict: refuted I18
"""After Fuser#4096: stages are aligned for a narrower swizzle than the one they use."""

from argus.language import (
    assert_written_once, assume, bf16, block_id, ceil_div, copy, cp_async, kernel, loop, registers, shared, sm_90a,
    spread, sync, tag, Tensor,
)


@kernel(target=sm_90a, threads=32)
def move(A: Tensor["M N", bf16], B: Tensor["M N", bf16]):
    (M, N), by = A.shape, spread((12, 32), threads=32, vector=4)
    tag(A, lambda m, n: dict(m=m, n=n))
    assume(N % 8 == 0)
    tiles = shared(bf16, (2, 12, 32), swizzle=64)
    (m,) = block_id((ceil_div(M, 12),))
    x = registers(bf16, by)
    for n in loop(ceil_div(N, 32)):
        copy(A.tile((12, 32), (m, n)), tiles[n % 2], via=cp_async, by=by, edge=0)
        cp_async.commit()
        cp_async.wait(0)
        sync()
        copy(tiles[n % 2], x)
        copy(x, B.tile((12, 32), (m, n)), edge=0)
        sync()
    assert_written_once(B, lambda m, n: dict(m=m, n=n))
