# verdict: refuted I28
"""An element of a table of up to 2^90 integers: byte offsets into it may exceed 64 bits."""

from argus.language import (
    Tensor, assert_written_once, block_id, ceil_div, copy, f32, global_load, i32, gfx942, kernel, load, promise,
    scalar, spread, tag, vmem, when,
)


@kernel(target=gfx942, threads=256)
def chosen(X: Tensor["R 1024", f32], T: Tensor["P Q S", i32], Y: Tensor["P 1024", f32]):
    promise(T, lambda row: (row >= 0) & (row < X.shape[0]))
    tag(X, lambda r, n: dict(r=r, n=n))
    (P, Q, S), R = T.shape, X.shape[0]
    (p,) = block_id((P,))
    with when((Q >= 1) & (S >= 1) & (R >= 1)):
        row = scalar(T[p, Q - 1, S - 1])
        held = load(X[row].tile((1024,), (0,)), spread((1024,), threads=256, vector=4), via=global_load)
        vmem.wait(0)
        copy(held, Y[p].tile((1024,), (0,)))
