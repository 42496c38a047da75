# verdict: refuted I37
"""Grouped heads: the block of query head `h` reads key head `h` instead of `h // 4`, beyond the last key head."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, eq, f32, gfx942, global_load, kernel, registers,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def expand(K: Tensor["G T D", f32], Y: Tensor["H T D", f32]):
    (G, T, D), H = K.shape, Y.shape[0]
    assume(eq(H, 4 * G), T % 16 == 0, D % 16 == 0, H <= 256, T < 1 << 20, D <= 256)
    tag(K, lambda g, t, d: dict(g=g, t=t, d=d))
    h, t, d = block_id((H, ceil_div(T, 16), ceil_div(D, 16)))
    r = registers(f32, spread((16, 16), threads=64, vector=1))
    copy(K[h].tile((16, 16), (t, d)), r, via=global_load)
    vmem.wait(0)
    copy(r, Y[h].tile((16, 16), (t, d)))
    assert_written_once(Y, lambda h, t, d: dict(g=h // 4, t=t, d=d))
