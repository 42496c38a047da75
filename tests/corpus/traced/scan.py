# verdict: proved
"""Inclusive scan of rows of any length: a run per thread, warp shuffles, shared memory across warps, a carry."""

from attrs import frozen

from argus.core.target import Target
from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, f32, gfx942,
    kernel, last_lane, lds, load, loop, registers, replicated, runs, shared, sm_90a, sync, tag, thread, vmem, warp, wave,
)


@frozen
class Chunks:
    target: Target
    threads: int
    chunk: int

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


@kernel(configs={"hopper": Chunks(sm_90a, 256, 2048), "cdna3": Chunks(gfx942, 256, 1024)})
def scan(X: Tensor["R N", f32], Y: Tensor["R N", f32], *, cfg):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0)  # rows of whole vectors
    (row,) = block_id((R,))
    by, carry = runs((cfg.chunk,), threads=cfg.threads, vector=4), registers(f32, replicated(cfg.threads))
    box = shared(f32, (cfg.warps,))
    carry[:] = 0.0
    for i in loop(ceil_div(N, cfg.chunk)):
        v = load(X[row].tile((cfg.chunk,), (i,)), by, edge=0)
        arrived(cfg)
        run = v.scan(0, add, within=thread)  # prefix in the thread
        lane = run.last(0).scan(0, add, within=warp)  # prefix of run totals over lanes
        copy(lane.last(0), box, by=last_lane)
        meet(cfg)
        heads = load(box, all_to_each(cfg.threads))
        arrived(cfg)
        before = heads.sum(0, where=heads.index[0] < wave) + lane.shift(0, 1, fill=0.0)
        sums = run + before + carry
        n = i * cfg.chunk + sums.index[0]
        assert_covers(sums.tag.n, 0, n + 1, where=n < N)
        copy(sums, Y[row].tile((cfg.chunk,), (i,)), edge=0)
        carry += heads.sum(0)
        meet(cfg)  # the loop rewrites `box`
    assert_written_once(Y, lambda r, n: dict(r=r))
