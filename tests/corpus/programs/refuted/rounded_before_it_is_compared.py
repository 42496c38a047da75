# verdict: refuted I39
"""One launch rounds to bf16, the next takes what is stored for the number: whether it is greater differs."""

from argus.language import (
    Tensor, assert_equals, bf16, block_id, ceil_div, copy, elements, f32, kernel, load, program, sm_90a, spread, where,
    workspace,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def narrow(X: Tensor["M", f32], W: Tensor["M", bf16]):
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0).to(bf16), W.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def compare(W: Tensor["M", bf16], Y: Tensor["M", f32]):
    (m,) = block_id((ceil_div(W.shape[0], 64),))
    copy(where(load(W.tile((64,), (m,)), BY, edge=0).to(f32) > 1.0, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)


@program
def above(X: Tensor["M", f32], Y: Tensor["M", f32]):
    W = workspace(bf16, X.shape)
    narrow(X, W)
    compare(W, Y)
    assert_equals(Y, lambda r: where(elements(X)(r) > 1, 1, 0))
