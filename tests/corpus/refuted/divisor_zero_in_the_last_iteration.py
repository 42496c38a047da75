# verdict: refuted I28
"""Row k of the output is row k mod (M - k) of the input; a load ahead of the branch divides by zero in the last iteration."""

from argus.language import Tensor, assert_written_once, assume, block_id, copy, f32, kernel, load, loop, sm_90a, spread, tag, when

BY = spread((32,), threads=32, vector=1)


@kernel(target=sm_90a, threads=32)
def folded(X: Tensor["M 32", f32], Y: Tensor["M 32", f32]):
    M, _ = X.shape
    assume(M <= 1 << 20)
    tag(X, lambda m, n: dict(m=m, n=n))
    block_id((1,))
    for k in loop(M + 1):
        row = load(X[k % (M - k)], BY, edge=0)
        with when(k < M):
            copy(row, Y[k])
    assert_written_once(Y, lambda m, n: dict(m=m % (M - m), n=n))
