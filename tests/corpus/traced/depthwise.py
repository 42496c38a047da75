# verdict: proved
"""Depthwise convolution, 3 x 3, one filter per channel; the loops over the window are unrolled."""

from attrs import frozen

from argus.core.target import Target
from argus.language import (
    Tensor, assert_products, assume, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, sm_90a, spread, tag,
    unflatten, vmem, zeros,
)

R_static, S_static = 3, 3


@frozen
class Window:
    target: Target
    pixels: int = 64
    channels: int = 64
    stride: int = 1
    pad: int = 1
    threads: int = 256


@kernel(configs={"hopper": Window(sm_90a), "cdna3": Window(gfx942, stride=2)})
def depthwise(X: Tensor["B H W C", bf16], F: Tensor["3 3 C", bf16], Y: Tensor["B P Q C", bf16], *, cfg):
    (batch, H, W, C), (_, P, Q, _) = X.shape, Y.shape
    assume(C % 8 == 0, P >= 1, Q >= 1)  # rows of 16-byte vectors; no division by zero
    assume(batch * H * W * C <= (1 << 31) - 8, batch * P * Q * C <= (1 << 31) - 8)  # indices fit 32 bits
    tag(X, lambda b, h, w, c: dict(b=b, c=c))  # the window position needs no tag of its own
    tag(F, lambda r, s, c: dict(c=c))
    tile = block_id((ceil_div(batch * P * Q, cfg.pixels), ceil_div(C, cfg.channels)))

    def shifted(m, c, r, s):
        b, p, q = unflatten(m, (batch, P, Q))
        return b, p * cfg.stride + r - cfg.pad, q * cfg.stride + s - cfg.pad, c

    by = spread((cfg.pixels, cfg.channels), threads=256, vector=8)
    total = zeros(f32, by)
    for r in range(R_static):
        for s in range(S_static):  # Python loops: unrolled, offsets fold into the address
            window = X.gather((batch * P * Q, C), lambda m, c: shifted(m, c, r, s), outside=0)
            x = load(window.tile((cfg.pixels, cfg.channels), tile), by, edge=0)
            f = load(F[r, s].tile((cfg.channels,), (tile[1],)), by.axis(1), edge=0)
            if cfg.target == gfx942:
                vmem.wait(0)  # on Hopper the hardware waits at the first use
            total += x.to(f32) * f.to(f32)
    copy(total.to(bf16), Y.reshape(-1, C).tile((cfg.pixels, cfg.channels), tile), edge=0)
    assert_products(
        Y,
        lambda b, p, q, c: [
            ((b, p * cfg.stride + r - cfg.pad, q * cfg.stride + s - cfg.pad, c), (r, s, c))
            for r in range(R_static)
            for s in range(S_static)
        ],
    )
