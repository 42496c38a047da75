# verdict: proved
"""Places up to 2^24 are compared as numbers of f32, which has all of them; a choice replaces the others."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, i32, kernel, load, registers, sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def at_its_place(X: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x = load(X.tile((64,), (m,)), BY, edge=0)
    place = registers(i32, BY)
    (i,) = x.index
    place[:] = 64 * m + i
    place[:] = where(place < 1 << 24, place, 0)
    copy(where(x == place.to(f32), 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: where(r < 1 << 24, where(X[r] == r, 1, 0), where(X[r] == 0, 1, 0)))
