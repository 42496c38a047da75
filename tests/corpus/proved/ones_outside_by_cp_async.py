# verdict: proved
"""cp.async into shared memory with ones beyond the last row: the instruction itself fills with zeros only."""

from argus.language import (
    Tensor, assert_written_once, block_id, ceil_div, copy, cp_async, f32, kernel, load, shared, sm_90a, spread, sync,
    tag,
)


@kernel(target=sm_90a, threads=128)
def padded(X: Tensor["R 64", f32], Y: Tensor["R 64", f32]):
    R, _ = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    (m,) = block_id((ceil_div(R, 64),))
    by = spread((64, 64), threads=128, vector=4)
    box = shared(f32, (64, 64))
    copy(X.tile((64, 64), (m, 0)), box, via=cp_async, by=by, edge=1)
    cp_async.commit()
    cp_async.wait(0)
    sync()
    copy(load(box, by), Y.tile((64, 64), (m, 0)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
