# verdict: proved
"""Cross entropy with label smoothing; rows with a negative label count 0."""

from fractions import Fraction

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, kernel, load, log, loop, registers, sm_90a,
    spread, total, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def cross_entropy_smoothed(X: Tensor["M N", f32], L: Tensor["M", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    assume(N >= 1, N <= 1 << 24)  # labels are numbers of f32
    (m,) = block_id((ceil_div(M, 64),))
    label = load(L.tile((64,), (m,)), BY, edge=0)
    s, own, all_ = [registers(f32, BY) for _ in range(3)]
    s[:] = 0.0
    own[:] = 0.0
    all_[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        s[:] = s + exp(v)
        own[:] = own + where(label == i, v, 0.0)
        all_[:] = all_ + v
    loss = 0.9 * (log(s) - own) + 0.1 * (log(s) - all_ / N)
    copy(where(label < 0.0, 0.0, loss), Y.tile((64,), (m,)), edge=0)
    smoothed = Fraction(0.9) + Fraction(0.1)  # not quite 1

    def formula(r):
        own = total(lambda j: where(L[r] == j, X[r, j], 0), over=N)
        mean = total(lambda j: X[r, j], over=N) / N
        return where(L[r] < 0, 0, log(total(lambda j: exp(X[r, j]), over=N)) * smoothed - 0.9 * own - 0.1 * mean)

    assert_equals(Y, formula)
