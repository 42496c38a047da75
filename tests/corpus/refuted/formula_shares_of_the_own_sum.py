# verdict: refuted I39
"""A block of a cluster divides by the sum of its own half."""

from argus.language import (
    Tensor, add, all_to_each, assert_equals, assume, block_id, cluster, copy, f32, first_lane, kernel, load, shared,
    sm_90a, spread, total, warp,
)

THREADS = 64


@kernel(target=sm_90a, threads=THREADS, cluster=(2,))
def shares(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N <= 2 * THREADS)
    (block,) = block_id((2 * R,))
    cluster.arrive()
    row, rank = block // 2, cluster.rank
    x = load(X.tile((1, THREADS), (row, rank)), spread((1, THREADS), threads=THREADS, vector=1), edge=0)
    box = shared(f32, (1, 4))
    of_warps = x.fold(1, add, within=warp)
    cluster.wait()
    for to in range(2):
        copy(of_warps, box.tile((1, 2), (0, rank)).of(to), by=first_lane, edge=0)
    cluster.sync()
    sums = load(box.tile((1, 2), (0, rank)), all_to_each(THREADS)).sum(1)
    copy(x / sums, Y.tile((1, THREADS), (row, rank)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] / total(lambda j: X[r, j], over=N))
