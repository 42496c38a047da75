# verdict: proved
"""Layer norm of rows of any length: Welford's mean and sum of squared deviations, merged chunk by chunk.

Same structure as the online softmax, with the pair (mean, m2) in place of (maximum, sum). Padding reads 0 and is
excluded by its coordinate.
"""

from attrs import frozen

from argus.core.target import Target
from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, f32, first_lane, gfx942, kernel, lds,
    load, loop, ones, registers, rsqrt, shared, sm_90a, spread, sync, tag, thread, vmem, warp, where,
)


@frozen
class Rows:
    target: Target
    threads: int
    chunk: int
    vector: int = 4
    epsilon: float = 1e-5

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
def layer_norm(
    X: Tensor["R N", f32], G: Tensor["N", f32], B: Tensor["N", f32], Y: Tensor["R N", f32], *, cfg
):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(G, lambda n: dict(n=n))
    tag(B, lambda n: dict(n=n))
    assume(N % cfg.vector == 0)  # rows of whole vectors
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((cfg.chunk,), threads=cfg.threads, vector=cfg.vector)
    one = ones(f32, by)
    seen, mean, m2 = [registers(f32, by.partial(0)) for _ in range(3)]
    seen[:], mean[:], m2[:] = 0.0, 0.0, 0.0
    for i in loop(ceil_div(N, cfg.chunk)):
        v = load(x.tile((cfg.chunk,), (i,)), by, edge=0)
        arrived(cfg)
        (e,) = v.index
        valid = i * cfg.chunk + e < N
        count = one.sum(0, within=thread, where=valid)
        some = where(count == 0.0, 1.0, count)  # a thread beyond the end of the row has no elements: divide by 1
        middle = v.sum(0, within=thread, where=valid) / some
        off = where(valid, v - middle, 0.0)
        delta = middle - mean
        both = seen + count
        all_ = where(both == 0.0, 1.0, both)
        m2 += (off * off).sum(0, within=thread) + delta * delta * (seen * count / all_)
        mean += delta * (count / all_)
        seen[:] = both
    center = across_cta(mean * seen, add, cfg) / N
    spread_ = across_cta(m2 + seen * (mean - center) * (mean - center), add, cfg) / N
    assert_covers(center.tag.n, 0, N)
    assert_covers(spread_.tag.n, 0, N)
    scale = rsqrt(spread_ + cfg.epsilon)
    for i in loop(ceil_div(N, cfg.chunk)):
        v = load(x.tile((cfg.chunk,), (i,)), by, edge=0)
        g = load(G.tile((cfg.chunk,), (i,)), by, edge=0)
        b = load(B.tile((cfg.chunk,), (i,)), by, edge=0)
        arrived(cfg)
        copy((v - center) * scale * g + b, y.tile((cfg.chunk,), (i,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
