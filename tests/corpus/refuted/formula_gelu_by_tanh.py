# verdict: refuted I39
"""GELU by a hyperbolic tangent, which is another function than the claimed error function."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, erf, f32, kernel, load, maximum, maximum_nan, sm_90a, spread, tanh_accurate,
)


@kernel(target=sm_90a, threads=128)
def gelu_by_tanh(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    assume(N % 4 == 0)
    (block,) = block_id((ceil_div(N, 512),))
    x = maximum_nan(load(X.tile((512,), (block,)), spread((512,), threads=128, vector=4), edge=0), -8.0)
    copy(0.5 * x * (1.0 + tanh_accurate(x * 0.7978845608 * (1.0 + 0.044715 * x * x))), Y.tile((512,), (block,)), edge=0)
    assert_equals(Y, lambda n: maximum(X[n], -8) / 2 * (erf(maximum(X[n], -8) * 0.7071067811865476) + 1))
