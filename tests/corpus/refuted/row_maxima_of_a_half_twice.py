# verdict: refuted I3
"""Maxima of rows of which two waves load one half each, in iterations of their own: the second wave begins with the first
block twice."""

from math import inf

from argus.language import (
    TV, Layout, Swizzle, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, buffer_load_lds, ceil_div,
    copy, ds_read_b64, eq, f32, gfx942, kernel, lds, load, loop, maximum, mfma, mfma_f32_16x16x16_bf16, registers, shared,
    sync, tag, vmem, wave, when,
)


@kernel(target=gfx942, threads=128)
def row_maxima(X: Tensor["R C", bf16], Y: Tensor["R", f32]):
    R, C = X.shape
    tag(X, lambda r, c: dict(r=r, c=c))
    assume(C >= 1, C % 256 == 0, R * C <= (1 << 31) - 8)
    (m,) = block_id((ceil_div(R, 32),))
    rows = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 2), tile=(16, 32)).B.tiled(k=256)
    lds_x = shared(bf16, (2, 32, 256), swizzle=Swizzle(4, 2, 6))
    depth = C // 256
    by = TV(Layout((64, 2), (2 * 32, 128 * 32)), Layout((2, 32), (32, 1)), (32, 256))
    high = registers(f32, rows.axis(0))
    high[:] = -inf

    def bring(k):
        with when(k < depth):
            copy(X.tile((32, 256), (m, k)), lds_x[k % 2], via=buffer_load_lds, by=by, edge=0)

    bring(0)
    with when(eq(wave, 1) & (depth > 1)):
        copy(X.tile((32, 256), (m, 0)), lds_x[1], via=buffer_load_lds, by=by, edge=0)
    vmem.wait(0)
    sync()
    with when(eq(wave, 1)):
        sync()
    for k in loop(depth):
        x = load(lds_x[k % 2], rows, via=ds_read_b64)
        lds.wait(0)
        high[:] = maximum(high, x.to(f32).max(1))
        sync()
        bring(k + 1 + wave)
        vmem.wait(0)
        sync()
    with when(eq(wave, 0)):
        sync()
    assert_covers(high.tag.c, 0, C)
    copy(high, Y.tile((32,), (m,)), edge=0)
    assert_written_once(Y, lambda r: dict(r=r))
