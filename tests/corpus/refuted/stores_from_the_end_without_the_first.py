# verdict: refuted I39 I4
"""Tiles from the end on, one too few when the length is no multiple of them: the first elements are not stored."""

from argus.language import TV, Layout, Tensor, assert_equals, block_id, copy, f32, kernel, load, sm_90a

BY = TV(Layout(32, 1), Layout(1, 0), (32,))


@kernel(target=sm_90a, threads=32)
def without_the_first(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    r, i = block_id((R, N // 32))
    own = lambda t: (N - 1 - (i * 32 + t),)
    v = load(X[r].gather((32,), own, outside=0.0), BY, edge=0.0)
    copy(v * 2.0, Y[r].gather((32,), own), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] * 2)
