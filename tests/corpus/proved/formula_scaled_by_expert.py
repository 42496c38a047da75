# verdict: proved
"""Rows sorted by expert, each times its expert's factor, in tiles that two tensors list, checked against the offsets."""

from __future__ import annotations

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, copy, eq, f32, i32, kernel, load, promise, scalar, sm_90a, spread,
    total,
)


@kernel(target=sm_90a, threads=256)
def scaled(
    X: Tensor["T 64", f32],
    F: Tensor["E", f32],  # noqa: UP037 reason: the name of a size
    starts: Tensor["S", i32],  # noqa: UP037 reason: as above
    firsts: Tensor["Q", i32],  # noqa: UP037 reason: as above
    owner: Tensor["P", i32],  # noqa: UP037 reason: as above
    Y: Tensor["T 64", f32],
):
    (T, _), (E,), (P,) = X.shape, F.shape, owner.shape

    def has_tile(e: Int, p: Int):
        inside = (scalar(starts[e]) <= scalar(firsts[p])) & (scalar(firsts[p + 1]) <= scalar(starts[e + 1]))
        return (0 <= e) & (e < E) & inside

    promise(starts, ascending=True, first=0, last=T)
    promise(firsts, ascending=True, first=0, last=T, most=64)
    promise(owner, has_tile)
    assume(eq(starts.shape[0], E + 1), eq(firsts.shape[0], P + 1), T < 1 << 28, T <= 64 * P)
    (p,) = block_id((P,))
    by = spread((64, 64), threads=256, vector=4)
    first, end, mine = scalar(firsts[p]), scalar(firsts[p + 1]), scalar(owner[p])
    rows = load(X.rows(first).tile((64, 64), (0, 0)), by, edge=0)
    factor = load(F.gather((64,), lambda _: (mine,)), by.axis(0))
    copy(rows * factor, Y.rows(first, end).tile((64, 64), (0, 0)), edge=0)

    def of_row(t: Int, n: Int):
        def holds(e: Int):
            return (scalar(starts[e]) <= t) & (t < scalar(starts[e + 1]))

        return total(lambda e: X[t, n] * F[e], over=E, where=holds)

    assert_equals(Y, of_row)
