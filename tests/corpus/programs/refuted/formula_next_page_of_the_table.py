# verdict: refuted I39
"""Sums of rows in pages of a table, each page but the last one after the one that is meant."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, i32, kernel, load, loop, maximum, minimum, program,
    promise, registers, replicated, first_lane, scalar, sm_90a, spread, total, where, workspace,
)

PAGE, PAGES = 32, 4


@kernel(target=sm_90a, threads=32)
def parts(X: Tensor["P 32", f32], table: Tensor["B N", i32], lengths: Tensor["B", i32], S: Tensor["B Z", f32]):
    (P, _), (B, N), Z = X.shape, table.shape, S.shape[1]
    promise(lengths, lambda n: (0 <= n) & (n <= N * PAGE))
    assume(P >= 1, N >= 1, N < 1 << 20, Z * PAGES >= N)
    z, b = block_id((Z, B))
    n, by, sums = scalar(lengths[b]), spread((PAGE,), threads=32, vector=1), registers(f32, replicated(32))
    sums[:] = 0.0
    for i in loop(z * PAGES, minimum((z + 1) * PAGES, ceil_div(n, PAGE))):
        page = minimum(maximum(scalar(table[b, minimum(i + 1, N - 1)]), 0), P - 1)
        x = load(X[page], by)
        sums[:] = sums + where(PAGE * i + x.index[0] < n, x, 0.0).sum(0)
    copy(sums, S[b, z], by=first_lane, edge=0)


@kernel(target=sm_90a, threads=32)
def added(S: Tensor["B Z", f32], lengths: Tensor["B", i32], Y: Tensor["B", f32]):
    B, Z = S.shape
    promise(lengths, lambda n: (0 <= n) & (n <= Z * PAGES * PAGE))
    (b,) = block_id((B,))
    sums = registers(f32, replicated(32))
    sums[:] = 0.0
    for z in loop(ceil_div(ceil_div(scalar(lengths[b]), PAGE), PAGES)):
        sums[:] = sums + load(S[b, z], replicated(32))
    copy(sums, Y[b], by=first_lane, edge=0)


@program
def sums_of_pages(X: Tensor["P 32", f32], table: Tensor["B N", i32], lengths: Tensor["B", i32], Y: Tensor["B", f32]):
    P, (B, N) = X.shape[0], table.shape
    S = workspace(f32, (B, ceil_div(N, PAGES)))
    parts(X, table, lengths, S)
    added(S, lengths, Y)
    assert_equals(
        Y,
        lambda b: total(
            lambda i, j: X[minimum(maximum(scalar(table[b, i]), 0), P - 1), j],
            over=(ceil_div(scalar(lengths[b]), PAGE), PAGE),
            where=lambda i, j: PAGE * i + j < scalar(lengths[b]),
        ),
    )
