# verdict: rejected E213
"""A block of 32 threads is smaller than a wave of 64."""

from argus.language import (
    Tensor, bf16, block_id, ceil_div, gfx942, kernel, tag,
)


@kernel(target=gfx942, threads=32)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    (m,) = block_id((ceil_div(M, 1),))
