# verdict: refuted I39
"""The relation uses m % 4 where the tag uses m % 8."""

from argus.language import (
    Tensor, assert_relation, assert_written_once, assume, bf16, block_id, ceil_div, copy, ds_read_b128, ds_write_b128, eq,
    gfx942, global_load, kernel, lds, registers, shared, spread, sync, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def staged(X: Tensor["M K", bf16], Y: Tensor["M K", bf16]):
    M, K = X.shape
    tag(X, lambda m, k: dict(m=m, k=k, chunk=(k // 8) ^ (m % 8)))
    assume(M >= 1, K >= 1, K % 8 == 0)
    by = spread((64, 32), threads=256, vector=8)
    box = shared(bf16, (64, 32), banks=4)
    m, k = block_id((ceil_div(M, 64), ceil_div(K, 32)))
    x = registers(bf16, by)
    y = registers(bf16, by)
    copy(X.tile((64, 32), (m, k)), x, via=global_load, edge=0)
    vmem.wait(0)
    copy(x, box, via=ds_write_b128)
    lds.wait(0)
    sync()
    copy(box, y, via=ds_read_b128)
    lds.wait(0)
    assert_relation(y, lambda t: eq(t.chunk, (t.k // 8) ^ (t.m % 4)))
    copy(y, Y.tile((64, 32), (m, k)), edge=0)
    assert_written_once(Y, lambda m, k: dict(m=m, k=k, chunk=(k // 8) ^ (m % 8)))
