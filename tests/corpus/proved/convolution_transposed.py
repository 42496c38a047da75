# verdict: proved
"""Transposed convolution: a window position maps to an input element only if the stride divides its offset."""

from argus.language import (
    Tensor, assert_covers, assert_products, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, every, f32,
    gfx942, global_load, kernel, loop, mfma, mfma_f32_32x32x8_bf16, mma, registers, tag, unflatten, vmem, where,
)

stride, pad = 2, 1


def origin(place):
    """The input coordinate of a window position; -1 in a gap between strides."""
    return where(eq(place % stride, 0), place // stride, -1)


@kernel(target=gfx942, threads=64)
def conv(X: Tensor["B H W C", bf16], F: Tensor["O R S C", bf16], Y: Tensor["B P Q O", bf16]):
    (batch, H, W, C), (out, R, S, _), (_, P, Q, _) = X.shape, F.shape, Y.shape
    pixels, depth = batch * P * Q, R * S * C
    assume(C % 8 == 0, depth % 8 == 0, C >= 1, R >= 1, S >= 1, P >= 1, Q >= 1)
    assume(depth < 1 << 29, P < 1 << 29, Q < 1 << 29, S < 1 << 29)  # coordinates beyond the input fit 32 bits too
    assume(batch * H * W * C <= (1 << 31) - 8, pixels * out < 1 << 30, pixels < 1 << 30, out * depth <= (1 << 31) - 8)

    def pixel(m, k):
        (b, p, q), (r, s, c) = unflatten(m, (batch, P, Q)), unflatten(k, (R, S, C))
        return b, origin(p + pad - r), origin(q + pad - s), c

    window, filters, result = X.gather((pixels, depth), pixel, outside=0), F.reshape(out, depth), Y.reshape(pixels, out)
    tag(window, lambda m, k: dict(m=m, k=k))
    tag(filters, lambda n, k: dict(n=n, k=k))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=32, k_run=8)
    m, n = block_id((ceil_div(pixels, 32), ceil_div(out, 32)))
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    for k in loop(ceil_div(depth, 32)):
        copy(window.tile((32, 32), (m, k)), a, via=global_load, edge=0)
        copy(filters.tile((32, 32), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, depth)
    copy(acc.to(bf16), result.tile((32, 32), (m, n)), edge=0)
    assert_written_once(result, lambda m, n: dict(m=m, n=n))
    assert_products(
        Y,
        lambda b, p, q, o: [
            ((b, origin(p + pad - r), origin(q + pad - s), c), (o, r, s, c)) for r, s, c in every(R, S, C)
        ],
    )
