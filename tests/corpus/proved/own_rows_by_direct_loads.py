# verdict: proved
"""Each wave loads its own rows directly into LDS and reads only these: waits suffice, no barrier is needed."""

from argus.language import (
    Tensor, assert_written_once, assume, bf16, block_id, buffer_load_lds, ceil_div, copy, gfx942, kernel, lds, load,
    shared, spread, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def moved(A: Tensor["M K", bf16], C: Tensor["M K", bf16]):
    M, K = A.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    assume(K % 256 == 0, M * K <= (1 << 31) - 8)
    rows = shared(bf16, (32, 128))
    m, k = block_id((ceil_div(M, 32), K // 256))
    by = spread((32, 128), threads=256, vector=2)
    copy(A.tile((32, 128), (m, 2 * k)), rows, via=buffer_load_lds, by=by, edge=0)
    vmem.wait(0)
    first = load(rows, by)
    lds.wait(0)
    copy(A.tile((32, 128), (m, 2 * k + 1)), rows, via=buffer_load_lds, by=by, edge=0)
    vmem.wait(0)
    second = load(rows, by)
    lds.wait(0)
    copy(first, C.tile((32, 128), (m, 2 * k)), edge=0)
    copy(second, C.tile((32, 128), (m, 2 * k + 1)), edge=0)
    assert_written_once(C, lambda m, k: dict(m=m, k=k))
