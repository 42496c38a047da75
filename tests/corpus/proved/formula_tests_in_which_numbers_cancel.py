# verdict: proved
"""A test in which an element occurs on both sides, with the claim's own test: rounding is an assumption of the verdict."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, f32, floor, kernel, load, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=64)
def compared(X: Tensor["M", f32], Z: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0) for each in (X, Z))
    copy(where(x * x + x > z, x, floor(x - x * z)), Y.tile((64,), (m,)), edge=0)

    def formula(m):
        a, b = elements(X)(m), elements(Z)(m)
        return where(a + a * a > b, a, floor(a - b * a))

    assert_equals(Y, formula)
