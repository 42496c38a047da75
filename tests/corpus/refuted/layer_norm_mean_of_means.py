# verdict: refuted I39 I25
"""Adds the threads' means without weighting them by element count: threads with fewer elements weigh too much."""

from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_equals, assert_written_once, assume, block_id, ceil_div, copy, f32,
    first_lane, kernel, load, loop, ones, registers, rsqrt, shared, sm_90a, spread, sync, tag, thread, total, warp,
    where,
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
    one = ones(f32, by)
    seen, mean, m2 = [registers(f32, by.partial(0)) for _ in range(3)]
    seen[:], mean[:], m2[:] = 0.0, 0.0, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=0)
        (e,) = v.index
        valid = i * CHUNK + e < N
        count = one.sum(0, within=thread, where=valid)
        middle = v.sum(0, within=thread, where=valid) / where(count == 0.0, 1.0, count)
        off = where(valid, v - middle, 0.0)
        delta = middle - mean
        both = seen + count
        part = count / where(both == 0.0, 1.0, both)
        m2 += (off * off).sum(0, within=thread) + delta * delta * (seen * part)
        mean += delta * part
        seen[:] = both
    center = across_cta(mean) / N
    spread_ = across_cta(m2 + seen * (mean - center) * (mean - center)) / N
    assert_covers(center.tag.n, 0, N)
    assert_covers(spread_.tag.n, 0, N)
    scale = rsqrt(spread_ + 1e-5)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=0)
        g = load(G.tile((CHUNK,), (i,)), by, edge=0)
        b = load(B.tile((CHUNK,), (i,)), by, edge=0)
        copy((v - center) * scale * g + b, y.tile((CHUNK,), (i,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))

    def moment(r, power):
        """The sum of powers of differences from the mean of a row, divided by its length."""
        return total(lambda j: (X[r, j] - total(lambda k: X[r, k], over=N) / N) ** power, over=N) / N

    assert_equals(
        Y, lambda r, n: (X[r, n] - total(lambda k: X[r, k], over=N) / N) * rsqrt(moment(r, 2) + 1e-5) * G[n] + B[n]
    )
