# verdict: refuted I5
"""Two threads of different warps write one shared-memory element in the same statement."""

from argus.language import (
    Tensor, assert_written_once, assume, bf16, block_id, ceil_div, copy, kernel, registers, shared, sm_90a, spread,
    sync, tag,
)


@kernel(target=sm_90a, threads=128)
def move(A: Tensor["M K", bf16], C: Tensor["M K", bf16]):
    (M, K) = A.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    assume(M % 64 == 0, K % 64 == 0)
    s = shared(bf16, (32, 64))
    m, n = block_id((ceil_div(M, 32), ceil_div(K, 64)))
    big = registers(bf16, spread((64, 64), threads=128, vector=8))
    out = registers(bf16, spread((32, 64), threads=128, vector=8))
    cell = lambda i: (i // 16) * 8 + i % 8          # rows 16 q + r and 16 q + 8 + r meet in row 8 q + r
    row = lambda i: 32 * m + cell(i) - 64 * (1 - i % 16 // 8)  # the first of the two belongs to another tile
    copy(A.gather((64, 64), lambda i, j: (row(i), 64 * n + j)), big, edge=0)
    copy(big, s.gather((64, 64), lambda i, j: (cell(i), j)))
    sync()
    copy(s, out)
    copy(out, C.tile((32, 64), (m, n)))
    assert_written_once(C, lambda m, k: dict(m=m, k=k))
