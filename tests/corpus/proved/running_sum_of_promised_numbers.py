# verdict: proved
"""Numbers that a contract bounds, as many as i32 holds the sum of."""

from argus.language import (
    TV, Layout, Tensor, assert_equals, assume, block_id, ceil_div, copy, elements, i32, kernel, load, loop, promise,
    scalar, sm_90a, total, zeros,
)


@kernel(target=sm_90a, threads=128)
def add_rows(X: Tensor["T N", i32], Y: Tensor["N", i32]):
    promise(X, lambda x: (x >= -100) & (x <= 100))
    T, N = X.shape
    assume(T < 1 << 20, N < 1 << 28)
    (n,) = block_id((ceil_div(N, 128),))
    by = TV(Layout(128, 1), Layout(1, 0), (128,))
    acc = zeros(i32, by)
    for t in loop(T):
        acc += load(X[t].tile((128,), (n,)), by, edge=0)
    copy(acc, Y.tile((128,), (n,)), edge=0)
    assert_equals(Y, lambda n: total(lambda t: elements(X)(t, n), over=T))
