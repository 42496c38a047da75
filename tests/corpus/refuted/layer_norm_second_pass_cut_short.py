# verdict: refuted I25
"""The variance pass skips a partial last chunk that the mean pass includes."""

from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, f32, first_lane,
    kernel, load, loop, registers, rsqrt, shared, sm_90a, spread, sync, tag, thread, warp, where,
)

THREADS, CHUNK = 64, 256


def across_cta(x):
    """Block-wide sum of one value per thread: warp shuffles, then shared memory; every thread gets the result."""
    box = shared(f32, (THREADS // 32,))
    copy(x.fold(0, add, within=warp), box, by=first_lane)
    sync()
    return load(box, all_to_each(THREADS)).fold(0, add, within=thread)


@kernel(target=sm_90a, threads=THREADS)
def layer_norm(X: Tensor["R N", f32], G: Tensor["N", f32], B: Tensor["N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(G, lambda n: dict(n=n))
    tag(B, lambda n: dict(n=n))
    assume(N % 4 == 0)
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((CHUNK,), threads=THREADS, vector=4)
    total, squares = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    total[:], squares[:] = 0.0, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        total += load(x.tile((CHUNK,), (i,)), by, edge=0).sum(0, within=thread)
    whole = across_cta(total)
    assert_covers(whole.tag.n, 0, N)
    center = whole / N
    for i in loop(N // CHUNK):
        v = load(x.tile((CHUNK,), (i,)), by, edge=0)
        (e,) = v.index
        off = where(i * CHUNK + e < N, v - center, 0.0)
        squares += (off * off).sum(0, within=thread)
    around = across_cta(squares)
    assert_covers(around.tag.n, 0, N)
    spread_ = around / N
    scale = rsqrt(spread_ + 1e-5)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=0)
        g = load(G.tile((CHUNK,), (i,)), by, edge=0)
        b = load(B.tile((CHUNK,), (i,)), by, edge=0)
        copy((v - center) * scale * g + b, y.tile((CHUNK,), (i,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
