# verdict: refuted I4
"""Of two outputs one has a formula, which holds, and the other claims the next element's tag."""

from argus.language import (
    Tensor, assert_equals, assert_written_once, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, tag,
)


@kernel(target=sm_90a, threads=32)
def shifted(X: Tensor["R", f32], Y: Tensor["R", f32], Z: Tensor["R", f32]):
    (R,) = X.shape
    tag(X, lambda r: dict(r=r))
    (block,) = block_id((ceil_div(R, 32),))
    x = load(X.tile((32,), (block,)), spread((32,), threads=32, vector=1), edge=0)
    copy(x, Y.tile((32,), (block,)), edge=0)
    copy(x, Z.tile((32,), (block,)), edge=0)
    assert_equals(Y, lambda r: X[r])
    assert_written_once(Z, lambda r: dict(r=r + 1))
