# verdict: unknown
"""The factors of each product come from opposite ends: their tags share no name, so no tag says which ones meet."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, loop, registers,
    sm_90a, spread, tag,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def factors_from_opposite_ends(X: Tensor["N M", f32], F: Tensor["N M", f32], Y: Tensor["M", f32]):
    N, M = X.shape
    tag(X, lambda k, m: dict(k=k, m=m))
    tag(F, lambda j, m: dict(j=j, m=m))
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    sums = registers(f32, BY)
    sums[:] = 0.0
    for i in loop(N):
        x = load(X[i].tile((64,), (m,)), BY, edge=0)
        f = load(F[N - 1 - i].tile((64,), (m,)), BY, edge=0)
        sums += x * f
    assert_covers(sums.tag.k, 0, N)
    assert_covers(sums.tag.j, 0, N)
    copy(sums, Y.tile((64,), (m,)), edge=0)
    assert_written_once(Y, lambda m: dict(m=m))
