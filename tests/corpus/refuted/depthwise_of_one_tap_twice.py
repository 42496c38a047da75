# verdict: refuted I3
"""The first filter column is used for both window columns."""

from argus.language import (
    Tensor, assert_products, assume, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, spread, tag, unflatten,
    vmem, zeros,
)


@kernel(target=gfx942, threads=64)
def depthwise(X: Tensor["B H W C", bf16], F: Tensor["2 2 C", bf16], Y: Tensor["B P Q C", bf16]):
    (batch, H, W, C), (_, P, Q, _) = X.shape, Y.shape
    assume(C % 8 == 0, P >= 1, Q >= 1, batch * H * W * C <= (1 << 31) - 8, batch * P * Q * C <= (1 << 31) - 8)
    tag(X, lambda b, h, w, c: dict(b=b, c=c))
    tag(F, lambda r, s, c: dict(c=c))
    tile = block_id((ceil_div(batch * P * Q, 16), ceil_div(C, 32)))
    by = spread((16, 32), threads=64, vector=8)
    total = zeros(f32, by)
    for r in range(2):
        for s in (0, 0):

            def pixel(m, c, r=r, s=s):
                b, p, q = unflatten(m, (batch, P, Q))
                return b, p * 2 + r - 1, q * 2 + s - 1, c

            window = X.gather((batch * P * Q, C), pixel, outside=0)
            x = load(window.tile((16, 32), tile), by, edge=0)
            f = load(F[r, s].tile((32,), (tile[1],)), by.axis(1), edge=0)
            vmem.wait(0)
            total += x.to(f32) * f.to(f32)
    copy(total.to(bf16), Y.reshape(-1, C).tile((16, 32), tile), edge=0)
    assert_products(
        Y,
        lambda b, p, q, c: [
            ((b, p * 2 + r - 1, q * 2 + s - 1, c), (r, s, c)) for r in range(2) for s in range(2)
        ],
    )
