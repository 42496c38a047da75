# verdict: proved
"""Rows of sequences of at most 64, each in a tile of its own: from the end of a sequence on, a load reads ones."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, elements, eq, f32, gfx942, i32, kernel, load, promise,
    scalar, spread, vmem, where,
)


@kernel(target=gfx942, threads=256)
def padded(X: Tensor["T 64", f32], starts: Tensor["S", i32], Y: Tensor["B 64 64", f32]):
    T, B = X.shape[0], Y.shape[0]
    promise(starts, ascending=True, first=0, last=T, most=64)
    assume(eq(starts.shape[0], B + 1), T < 1 << 20, T >= 1)
    (b,) = block_id((B,))
    first, end = scalar(starts[b]), scalar(starts[b + 1])
    rows = load(X.rows(first, end).tile((64, 64), (0, 0)), spread((64, 64), threads=256, vector=4), edge=1)
    vmem.wait(0)
    copy(rows, Y[b])

    def value(s, t, n):
        return where(t < scalar(starts[s + 1]) - scalar(starts[s]), elements(X)(scalar(starts[s]) + t, n), 1)

    assert_equals(Y, value)
