# verdict: unknown
"""Rows of tokens sorted by expert, each times its expert's factor, in tiles that may be empty: claimed of first experts."""

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, copy, eq, f32, i32, kernel, load, loop, program, promise, scalar,
    sm_90a, spread, total, when, workspace, zeros,
)


@kernel(target=sm_90a, threads=64)
def gathered(X: Tensor["T 64", f32], tokens: Tensor["R", i32], A: Tensor["R 64", f32]):
    (T, _), (R,) = X.shape, tokens.shape
    promise(tokens, lambda t: (0 <= t) & (t < T))
    (r,) = block_id((R,))
    copy(load(X[scalar(tokens[r])], spread((64,), threads=64, vector=1)), A[r])


@kernel(target=sm_90a, threads=256)
def scaled(
    A: Tensor["R 64", f32], F: Tensor["E", f32], starts: Tensor["S", i32], firsts: Tensor["Q", i32],
    owner: Tensor["P", i32], D: Tensor["R 64", f32],
):
    (R, _), (E,), (P,) = A.shape, F.shape, owner.shape

    def has_tile(e: Int, p: Int):
        inside = (scalar(starts[e]) <= scalar(firsts[p])) & (scalar(firsts[p + 1]) <= scalar(starts[e + 1]))
        return (0 <= e) & (e < E) & inside

    promise(starts, ascending=True, first=0, last=R)
    promise(firsts, ascending=True, first=0, last=R, most=64)
    promise(owner, has_tile)
    assume(eq(starts.shape[0], E + 1), eq(firsts.shape[0], P + 1), R < 1 << 28, R <= 64 * P)
    (p,) = block_id((P,))
    by = spread((64, 64), threads=256, vector=4)
    first, end, mine = scalar(firsts[p]), scalar(firsts[p + 1]), scalar(owner[p])
    with when(first < end):
        rows = load(A.rows(first).tile((64, 64), (0, 0)), by, edge=0)
        factor = load(F.gather((64,), lambda _: (mine,)), by.axis(0))
        copy(rows * factor, D.rows(first, end).tile((64, 64), (0, 0)), edge=0)

    def of_row(r: Int, n: Int):
        def holds(e: Int):
            return (scalar(starts[e]) <= r) & (r < scalar(starts[e + 1]))

        return total(lambda e: A[r, n] * F[e], over=E, where=holds)

    assert_equals(D, of_row)


@kernel(target=sm_90a, threads=64)
def added(
    D: Tensor["R 64", f32], ids: Tensor["T J", i32], starts: Tensor["S", i32], tokens: Tensor["R", i32],
    inverse: Tensor["T J", i32], Y: Tensor["T 64", f32],
):
    (T, J), (R,), E = ids.shape, tokens.shape, starts.shape[0] - 1

    def is_of(r: Int, t: Int, j: Int):
        e = scalar(ids[t, j])
        inside = (scalar(starts[e]) <= r) & (r < scalar(starts[e + 1]))
        return (0 <= r) & (r < R) & inside & eq(scalar(tokens[r]), t)

    promise(ids, lambda e: (0 <= e) & (e < E))
    promise(starts, ascending=True, first=0, last=R)
    promise(tokens, lambda t: (0 <= t) & (t < T))
    promise(inverse, is_of)
    assume(E >= 1, T < 1 << 28)
    (t,) = block_id((T,))
    sums = zeros(f32, spread((64,), threads=64, vector=1))
    for j in loop(J):
        sums[:] = sums + load(D[scalar(inverse[t, j])], sums.layout)
    copy(sums, Y[t])


@program
def layer(
    X: Tensor["T 64", f32], F: Tensor["E", f32], ids: Tensor["T J", i32], starts: Tensor["S", i32],
    firsts: Tensor["Q", i32], owner: Tensor["P", i32], tokens: Tensor["R", i32], inverse: Tensor["T J", i32],
    Y: Tensor["T 64", f32],
):
    A, D = (workspace(f32, (tokens.shape[0], 64)) for _ in range(2))
    gathered(X, tokens, A)
    scaled(A, F, starts, firsts, owner, D)
    added(D, ids, starts, tokens, inverse, Y)
    assert_equals(Y, lambda t, n: total(lambda j: X[t, n] * F[scalar(ids[t, 0])], over=ids.shape[1]))
