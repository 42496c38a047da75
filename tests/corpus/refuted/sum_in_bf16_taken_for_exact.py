# verdict: refuted I39
"""A sum of two numbers of bf16 is rounded to bf16 before it is compared with the one in f32."""

from argus.language import Tensor, assert_equals, bf16, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, where


@kernel(target=sm_90a, threads=64)
def compared(X: Tensor["M", bf16], Z: Tensor["M", bf16], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0) for each in (X, Z))
    copy(where((x + z).to(f32) == x.to(f32) + z.to(f32), 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda _: 1)
