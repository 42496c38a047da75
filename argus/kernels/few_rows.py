"""GEMM of a few rows of A with rows of any length: each row of B is read once, element by element, by plain FMAs."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from argus.kernels.schedules.rows import Block, Rows
from argus.language import (
    DType,
    IntLike,
    Template,
    Tensor,
    add,
    assert_equals,
    bf16,
    elements,
    f16,
    f32,
    kernel,
    thread,
    total,
    zeros,
)

MOST = 4
"""The most rows of A: each costs a load and an FMA for each element of B."""
LONG, SHORT, SHORTEST = "block_a_row", "warp_a_row", "warp_a_short_row"
CONFIGS = {
    LONG: Rows(128, 1, 1, 16, held=False),
    SHORT: Rows(128, 4, 1, 32, held=False),
    SHORTEST: Rows(128, 4, 1, 8, held=False),
}
"""Warps that have a row of B each are for one row of A alone."""


def few_rows(dtype: DType, count: int) -> Template:
    """C = A @ B^T, of so many rows of A."""
    configs = CONFIGS if count == 1 else {LONG: CONFIGS[LONG]}

    @kernel(configs=configs, name=f"gemm_of_{count}_{dtype}")
    def made(
        A: Tensor[f"{count} K", dtype], B: Tensor["N K", dtype], C: Tensor[f"{count} N", dtype], *, cfg: Rows
    ) -> None:
        N, K = B.shape
        block = Block(cfg, N, K)
        b, a = block.rows(B), [block.columns(A[m]) for m in range(count)]
        sums = [zeros(f32, block.layout.partial(1)) for _ in a]

        def step(chunk: IntLike) -> None:
            v = b(chunk)
            for m, row in enumerate(a):
                sums[m][:] = sums[m] + (row(chunk) * v).sum(1, within=thread)

        block.each(step)
        for m, own in enumerate(sums):
            block.store_one(block.across(own, add), C[m])
        of_a, of_b = elements(A), elements(B)
        assert_equals(C, lambda m, n: total(lambda k: of_a(m, k) * of_b(n, k), over=K))

    return made


FAMILIES: dict[str, dict[int, Template]] = {
    name: {count: few_rows(dtype, count) for count in range(1, MOST + 1)}
    for name, dtype in (("gemm_nt", bf16), ("gemm_nt_f16", f16))
}
"""By the names of the kernels for aligned rows, and by the number of rows of A."""
