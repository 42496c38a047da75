# verdict: proved
"""Of each row, the element of the column that is nearest to an integer of any value."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, i32, kernel, load, maximum, minimum, scalar, sm_90a, spread,
)


@kernel(target=sm_90a, threads=64)
def picked(X: Tensor["R N", f32], T: Tensor["R", i32], Y: Tensor["R", f32]):
    R, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(R, 64),))

    def column(r):
        return maximum(0, minimum(scalar(T[r]), N - 1))

    picked = X.gather((R,), lambda r: (r, column(minimum(r, R - 1))))
    copy(load(picked.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: X[r, maximum(0, minimum(scalar(T[r]), N - 1))])
