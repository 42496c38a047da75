# verdict: refuted I4
"""The lanes of a pair hold different numbers and store them to one element: one is lost."""

from argus.language import TV, Layout, Tensor, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, tag


@kernel(target=sm_90a, threads=32)
def copied(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    assume(N % 32 == 0)
    tag(X, lambda n: dict(n=n))
    (i,) = block_id((N // 32,))
    x = load(X.tile((32,), (i,)), TV(Layout(32, 1), Layout(1, 0), (32,)))
    copy(x, Y.gather((32,), lambda j: (32 * i + j // 2,)))
    assert_written_once(Y, lambda n: dict(n=n))
