# verdict: proved
"""Row softmax of any length: one block per row, one pass for the maximum and the sum, one to write.

Every thread keeps the maximum and the sum of its own elements; shuffles reduce lanes, shared memory reduces warps.
"""

from math import inf

from attrs import frozen

from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, exp, f32, first_lane, gfx942, kernel, lds,
    load, loop, maximum, registers, shared, sm_90a, spread, sync, tag, thread, vmem, warp, where,
)
from argus.core.target import Target


@frozen
class Rows:
    target: Target
    threads: int
    chunk: int
    vector: int = 4

    @property
    def warps(self):
        return self.threads // self.target.unit


def meet(cfg):
    """Makes shared-memory writes visible to all threads of the block."""
    if cfg.target == gfx942:
        lds.wait(0)
    sync()


def arrived(cfg):
    """Waits for outstanding global loads; on Hopper the hardware waits at the first use."""
    if cfg.target == gfx942:
        vmem.wait(0)
        lds.wait(0)


def across_cta(x, op, cfg):
    """Block-wide fold of one value per thread: warp shuffles, then shared memory; every thread gets the result."""
    box = shared(f32, (cfg.warps,))
    copy(x.fold(0, op, within=warp), box, by=first_lane)
    meet(cfg)
    heads = load(box, all_to_each(cfg.threads))
    arrived(cfg)
    y = heads.fold(0, op, within=thread)
    meet(cfg)
    return y


@kernel(
    configs={
        "hopper": Rows(sm_90a, 256, 2048),
        "cdna3": Rows(gfx942, 256, 1024),
        "any_length": Rows(sm_90a, 128, 1024, vector=1),
    }
)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32], *, cfg):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % cfg.vector == 0)  # rows of whole vectors
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((cfg.chunk,), threads=cfg.threads, vector=cfg.vector)
    high, total = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], total[:] = -inf, 0.0
    for i in loop(ceil_div(N, cfg.chunk)):
        v = load(x.tile((cfg.chunk,), (i,)), by, edge=-inf)  # the neutral element of the maximum
        arrived(cfg)
        now = maximum(high, v.max(0, within=thread))
        guard = where(now == -inf, 0.0, now)
        total[:] = total * exp(high - guard) + exp(v - guard).sum(0, within=thread)
        high[:] = now
    top = across_cta(high, maximum, cfg)
    whole = across_cta(total * exp(high - top), add, cfg)
    assert_covers(whole.tag.n, 0, N)
    norm = 1.0 / whole
    for i in loop(ceil_div(N, cfg.chunk)):
        v = load(x.tile((cfg.chunk,), (i,)), by, edge=-inf)
        arrived(cfg)
        copy(exp(v - top) * norm, y.tile((cfg.chunk,), (i,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
