# verdict: proved
"""Whether any byte of a row is not 0, as a truth value: a maximum of 0 and 1 in f32, which has both."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, elements, f32, greatest, i8, kernel, load, loop, maximum, registers,
    sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def any_of_bytes(X: Tensor["M N", i8], Y: Tensor["M", i8]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    some = registers(f32, BY)
    some[:] = -inf
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0).to(f32)
        some[:] = maximum(some, where(v == 0, 0.0, 1.0))
    copy(some.to(i8), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: greatest(lambda j: where(elements(X)(r, j) == 0, 0, 1), over=N))
