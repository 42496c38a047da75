# verdict: unknown
"""A tensor that is read and written: nothing near it is proved."""

from argus.language import Tensor, assert_equals, before, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread


@kernel(target=sm_90a, threads=128)
def in_place(X: Tensor["N", f32]):
    (N,) = X.shape
    (i,) = block_id((ceil_div(N, 128),))
    x = load(X.tile((128,), (i,)), spread((128,), threads=128, vector=1), edge=0)
    copy(x * 2.0, X.tile((128,), (i,)), edge=0)
    assert_equals(X, lambda n: 2 * before(X)[n])
