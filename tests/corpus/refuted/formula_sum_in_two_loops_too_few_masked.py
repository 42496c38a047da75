# verdict: refuted I39
"""The block in which what the first row sees ends is not masked: other rows see more, and the first row less."""

from argus.language import (
    Fragment, Int, Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, loop, minimum, registers,
    sm_90a, spread, thread, total, where,
)

ROWS, COLUMNS = 32, 16


@kernel(target=sm_90a, threads=32)
def sums(X: Tensor["S T", f32], Y: Tensor["S", f32]):
    S, T = X.shape
    assume(S % 4 == 0, T % 4 == 0, S <= T, T < 1 << 28)
    (m,) = block_id((ceil_div(S, ROWS),))
    by = spread((ROWS, COLUMNS), threads=32, vector=1)
    held, found = registers(f32, by), registers(f32, by.partial(1))
    first = m * ROWS + T - S  # the last column that the first row sees
    end, clear = ceil_div(minimum(T, first + ROWS), COLUMNS), first // COLUMNS + 1

    def block(n: Int) -> Fragment:
        return load(X.tile((ROWS, COLUMNS), (m, n)), by, edge=0)

    def masked(n: Int) -> Fragment:
        of = block(n)
        return where(n * COLUMNS + of.index[1] <= first + of.index[0], of, 0)

    found[:] = 0.0
    held[:] = masked(end - 1)
    for n in loop(end - 2, clear - 1, step=-1):
        found += held.sum(1, within=thread)
        held[:] = masked(n)
    for n in loop(minimum(clear, end - 1) - 1, -1, step=-1):
        found += held.sum(1, within=thread)
        held[:] = block(n)
    found += held.sum(1, within=thread)
    copy(found.sum(1), Y.tile((ROWS,), (m,)), edge=0)
    assert_equals(Y, lambda r: total(lambda j: X[r, j], over=r + T - S + 1))
