# verdict: refuted I4
"""Every tile loads the pixels of the previous tile."""

from argus.language import (
    Tensor, assert_written_once, assume, bf16, block_id, ceil_div, copy, gfx942, kernel, load, spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def images(X: Tensor["B P Q C", bf16], Y: Tensor["B P Q C", bf16]):
    batch, P, Q, C = X.shape
    assume(C % 8 == 0, batch * P * Q * C <= (1 << 31) - 8)
    tag(X, lambda b, p, q, c: dict(b=b, p=p, q=q, c=c))
    tile = block_id((ceil_div(batch * P * Q, 16), ceil_div(C, 32)))
    x = load(X.reshape(-1, C).tile((16, 32), (tile[0] - 1, tile[1])), spread((16, 32), threads=64, vector=8), edge=0)
    vmem.wait(0)
    copy(x, Y.reshape(-1, C).tile((16, 32), tile), edge=0)
    assert_written_once(Y, lambda b, p, q, c: dict(b=b, p=p, q=q, c=c))
