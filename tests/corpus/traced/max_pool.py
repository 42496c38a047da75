# verdict: traced
"""Pooling, 3 x 3: maximum with -inf as padding, and average whose count uses the same predicate."""

from math import inf

from attrs import frozen

from argus.core.target import Target
from argus.language import (
    Tensor, assume, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, maximum, ones,
    registers, sm_90a, spread, tag, unflatten, vmem, where, zeros,
)

R_static, S_static = 3, 3


@frozen
class Window:
    target: Target
    pixels: int = 64
    channels: int = 64
    stride: int = 2
    pad: int = 1
    threads: int = 256


class Pooling:
    """Shared by both kernels: this block's output tile and the window's views of the input."""

    def __init__(self, X, Y, cfg):
        (self.batch, self.H, self.W, self.C), (_, self.P, self.Q, _) = X.shape, Y.shape
        self.X, self.Y, self.cfg = X, Y, cfg
        assume(self.C % 8 == 0, self.P >= 1, self.Q >= 1)  # rows of 16-byte vectors; no division by zero
        for pixels in (self.H * self.W, self.P * self.Q):
            assume(self.batch * pixels * self.C <= (1 << 31) - 8)  # indices fit 32 bits
        tag(X, lambda b, h, w, c: dict(b=b, c=c))  # the window position needs no tag of its own
        self.by = spread((cfg.pixels, cfg.channels), threads=256, vector=8)
        self.at = block_id((ceil_div(self.batch * self.P * self.Q, cfg.pixels), ceil_div(self.C, cfg.channels)))

    def shifted(self, m, c, r, s):
        b, p, q = unflatten(m, (self.batch, self.P, self.Q))
        cfg = self.cfg
        return b, p * cfg.stride + r - cfg.pad, q * cfg.stride + s - cfg.pad, c

    def window(self, r, s, outside):
        pixels = (self.batch * self.P * self.Q, self.C)
        view = self.X.gather(pixels, lambda m, c: self.shifted(m, c, r, s), outside=outside)
        x = load(view.tile((self.cfg.pixels, self.cfg.channels), self.at), self.by, edge=outside)
        if self.cfg.target == gfx942:
            vmem.wait(0)  # on Hopper the hardware waits at the first use
        return x.to(f32)

    def counted(self, x, r, s):
        """The input coordinates of an element of the window."""
        row, _ = x.index
        _, h, w, _ = self.shifted(self.at[0] * self.cfg.pixels + row, 0, r, s)
        return (h >= 0) & (h < self.H) & (w >= 0) & (w < self.W)

    def store(self, total):
        target = self.Y.reshape(-1, self.C).tile((self.cfg.pixels, self.cfg.channels), self.at)
        copy(total.to(bf16), target, edge=0)


@kernel(configs={"hopper": Window(sm_90a), "cdna3": Window(gfx942, stride=1)})
def max_pool(X: Tensor["B H W C", bf16], Y: Tensor["B P Q C", bf16], *, cfg):
    pooling = Pooling(X, Y, cfg)
    total = registers(f32, pooling.by)
    total[:] = -inf
    for r in range(R_static):
        for s in range(S_static):
            total[:] = maximum(total, pooling.window(r, s, outside=-inf))
    pooling.store(total)


@kernel(configs={"hopper": Window(sm_90a), "cdna3": Window(gfx942, stride=1)})
def average_pool(X: Tensor["B H W C", bf16], Y: Tensor["B P Q C", bf16], *, cfg):
    pooling = Pooling(X, Y, cfg)
    total, count, one = zeros(f32, pooling.by), zeros(f32, pooling.by), ones(f32, pooling.by)
    for r in range(R_static):
        for s in range(S_static):
            x = pooling.window(r, s, outside=0)
            total += x
            count += where(pooling.counted(x, r, s), one, 0.0)
    pooling.store(total / where(count == 0.0, 1.0, count))
