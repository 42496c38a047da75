# verdict: refuted I4
"""Two warps hold the same numbers and both store them, unordered: each element is written twice."""

from argus.language import TV, Layout, Tensor, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, tag


@kernel(target=sm_90a, threads=64)
def copied(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    assume(N % 4 == 0)
    tag(X, lambda n: dict(n=n))
    (i,) = block_id((N // 4,))
    every_thread = TV(Layout(64, 0), Layout(4, 1), (4,))
    copy(load(X.tile((4,), (i,)), every_thread), Y.tile((4,), (i,)))
    assert_written_once(Y, lambda n: dict(n=n))
