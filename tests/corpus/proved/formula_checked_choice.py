# verdict: proved
"""The score of a chosen column, or infinity where some column of the row has a larger one: the choice is any integer."""

from __future__ import annotations

from math import inf

from argus.language import (
    Int, Tensor, Value, assert_equals, assume, block_id, ceil_div, copy, elements, f32, i32, kernel, load, maximum,
    minimum, scalar, sm_90a, spread, total, where,
)


@kernel(target=sm_90a, threads=128)
def checked(X: Tensor["R N", f32], choice: Tensor["R", i32], Y: Tensor["R", f32]):  # noqa: UP037 reason: a size
    R, N = X.shape
    assume(N >= 1, N <= 32, R < 1 << 28)
    (m,) = block_id((ceil_div(R, 4),))
    by = spread((4, 32), threads=128, vector=1)

    def column(r: Int) -> Int:
        return maximum(0, minimum(scalar(choice[r]), N - 1))

    scores = load(X.tile((4, 32), (m, 0)), by, edge=-inf)
    chosen = load(X.gather((R,), lambda r: (minimum(r, R - 1), column(minimum(r, R - 1)))).tile((4,), (m,)), by.axis(0), edge=0)
    larger = where(scores > chosen, 1.0, 0.0).sum(1)
    copy(where(larger == 0, chosen, inf), Y.tile((4,), (m,)), edge=0)

    def claimed(r: Int) -> Value:
        x = elements(X)
        count = total(lambda n: where(x(r, n) > x(r, column(r)), 1, 0), over=N)
        return where(count == 0, x(r, column(r)), inf)

    assert_equals(Y, claimed)
