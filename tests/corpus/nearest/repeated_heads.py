# verdict: unknown
"""Each head for four rows; nothing says that there are as many heads."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread


@kernel(target=sm_90a, threads=128)
def repeated_heads(X: Tensor["H M", f32], Y: Tensor["R M", f32]):
    (H, M), (R, _) = X.shape, Y.shape
    (r, i) = block_id((R, ceil_div(M, 256)))
    by = spread((256,), threads=128, vector=1)
    x = load(X.gather((256,), lambda j: (r // 4, 256 * i + j), outside=0), by, edge=0)
    copy(x, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, m: X[r // 4, m])
