# verdict: proved
"""Decode attention split over the keys: each part leaves its output and the logarithm of its sum, a second launch
merges them.
"""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, first_lane, kernel, load, log,
    loop, maximum, program, registers, replicated, sm_90a, spread, thread, total, workspace,
)

CHUNK, SPLITS = 128, 4


@kernel(target=sm_90a, threads=32)
def parts(S: Tensor["R N", f32], V: Tensor["R N", f32], O: Tensor["R P", f32], L: Tensor["R P", f32]):
    (R, N), _ = S.shape, O.shape[1]
    assume(N % (CHUNK * SPLITS) == 0, N > 0)
    r, p = block_id((R, SPLITS))
    by = spread((CHUNK,), threads=32, vector=4)
    each = N // (CHUNK * SPLITS)
    top, sums, out = registers(f32, replicated(32)), registers(f32, replicated(32)), registers(f32, replicated(32))
    top[:] = -inf
    sums[:] = 0.0
    out[:] = 0.0
    for i in loop(each):
        s = load(S[r].tile((CHUNK,), (p * each + i,)), by)
        top[:] = maximum(top, s.max(0))
    for i in loop(each):
        s = load(S[r].tile((CHUNK,), (p * each + i,)), by)
        v = load(V[r].tile((CHUNK,), (p * each + i,)), by)
        w = exp(s - top)
        sums[:] = sums + w.sum(0)
        out[:] = out + (w * v).sum(0)
    copy(out / sums, O[r, p], by=first_lane, edge=0)
    copy(top + log(sums), L[r, p], by=first_lane, edge=0)


@kernel(target=sm_90a, threads=32)
def merged(O: Tensor["R P", f32], L: Tensor["R P", f32], Y: Tensor["R", f32]):
    R, P = O.shape
    (r,) = block_id((R,))
    top, sums, out = registers(f32, replicated(32)), registers(f32, replicated(32)), registers(f32, replicated(32))
    top[:] = -inf
    sums[:] = 0.0
    out[:] = 0.0
    for p in loop(P):
        top[:] = maximum(top, load(L[r, p], replicated(32)))
    for p in loop(P):
        w = exp(load(L[r, p], replicated(32)) - top)
        sums[:] = sums + w
        out[:] = out + w * load(O[r, p], replicated(32))
    copy(out / sums, Y[r], by=first_lane, edge=0)


@program
def attention(S: Tensor["R N", f32], V: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = S.shape
    O, L = workspace(f32, (R, SPLITS)), workspace(f32, (R, SPLITS))
    parts(S, V, O, L)
    merged(O, L, Y)
    assert_equals(Y, lambda r: total(lambda j: exp(S[r, j]) * V[r, j], over=N) / total(lambda j: exp(S[r, j]), over=N))
