# verdict: proved
"""Ragged sequences stored back to back: block b copies rows starts[b] to starts[b + 1]."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, gfx942, global_load, i32, kernel, load, loop,
    promise, scalar, spread, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def ragged(X: Tensor["T N", f32], starts: Tensor["S", i32], Y: Tensor["T N", f32]):
    (T, N), (S,) = X.shape, starts.shape
    promise(starts, ascending=True, first=0, last=T)
    assume(S >= 1, N % 4 == 0)
    tag(X, lambda t, n: dict(t=t, n=n))
    b, n = block_id((S - 1, ceil_div(N, 1024)))
    by = spread((1024,), threads=256, vector=4)
    for r in loop(scalar(starts[b]), scalar(starts[b + 1])):
        row = load(X[r].tile((1024,), (n,)), by, edge=0, via=global_load)
        vmem.wait(0)
        copy(row, Y[r].tile((1024,), (n,)), edge=0)
    assert_written_once(Y, lambda t, n: dict(t=t, n=n))
