# verdict: proved
"""For each column, sums over the rows of all matrices of a group from a diagonal on, in one loop over blocks of rows.

The loop goes through the blocks of one matrix after another, each time from the first block that reaches the diagonal.
"""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, loop, maximum, registers, sm_90a, spread,
    thread, total, where,
)

BY = spread((64, 2), threads=64, vector=2)


@kernel(target=sm_90a, threads=64)
def groups_from_a_first_block(X: Tensor["H S T", f32], Y: Tensor["G T", f32]):
    (H, S, T), G = X.shape, Y.shape[0]
    assume(G >= 1, H % G == 0, S >= 1, H < 1 << 12, S < 1 << 12, T < 1 << 12)
    t, g = block_id((ceil_div(T, 64), G))
    first = maximum(0, 64 * t + S - T) // 2
    count = ceil_div(S, 2) - first
    sums = registers(f32, BY.axis(0))
    sums[:] = 0.0
    for i in loop(H // G * count):
        h, m = g * (H // G) + i // count, first + i % count
        x = load(X[h].T.tile((64, 2), (t, m)), BY, edge=0)
        column, row = x.index
        x = where(64 * t + column <= 2 * m + row + T - S, x, 0.0)
        sums[:] = sums + x.sum(1, within=thread)
    copy(sums, Y[g].tile((64,), (t,)), edge=0)
    assert_equals(
        Y,
        lambda g, t: total(
            lambda j, q: X[g * (H // G) + j, q, t], over=(H // G, S), where=lambda j, q: t <= q + T - S
        ),
    )
