# verdict: proved
"""The mean of the elements before each row's own place, weighed by exponentials; 0 for row 0, which has none."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, exp, f32, first_lane, kernel, load, minimum, sm_90a, spread, total,
    warp, where,
)


@kernel(target=sm_90a, threads=32)
def earlier(X: Tensor["R 32", f32], Y: Tensor["R", f32]):
    (R, _) = X.shape
    assume(R <= 1 << 20)
    (row,) = block_id((R,))
    v = load(X[row], spread((32,), threads=32, vector=1))
    valid = v.index[0] < row
    top = where(valid, v, -inf).max(0, within=warp)
    weight = where(valid, exp(v - where(top == -inf, 0.0, top)), 0.0)
    sums = weight.sum(0, within=warp)
    means = (weight * v).sum(0, within=warp) / where(sums == 0.0, 1.0, sums)
    copy(means, Y[row], by=first_lane, edge=0)

    def weighed(r, factor):
        """The sum of weighed factors of the earlier elements."""
        return total(lambda j: exp(X[r, j]) * factor(j), over=minimum(r, 32))

    assert_equals(Y, lambda r: where(r > 0, weighed(r, lambda j: X[r, j]) / weighed(r, lambda _: 1), 0))
