"""GEMM of a few rows of A with rows of any length: each row of B is read once, element by element, by plain FMAs."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Sequence

from argus.kernels.schedules.compensated import add_compensated
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


WIDE = {
    LONG: Rows(256, 1, 4, 4, held=False),
    SHORT: Rows(128, 4, 4, 8, held=False),
    SHORTEST: Rows(128, 4, 4, 2, held=False),
}
"""The same of rows of f32 that are multiples of 16 bytes, in vectors."""


def _configs(dtype: DType, count: int) -> dict[str, Rows]:
    known = CONFIGS if count == 1 else {LONG: CONFIGS[LONG]}
    return known | {f"{name}_wide": WIDE[name] for name in known if dtype == f32}


def _sums(few: Tensor, many: Tensor, stored: Sequence[Tensor], cfg: Rows) -> None:
    """stored[m][n] = the product of row m of `few` with row n of `many`."""
    rows, length = many.shape
    block = Block(cfg, rows, length)
    b, a = block.rows(many), [block.columns(few[m]) for m in range(len(stored))]
    sums = [zeros(f32, block.layout.partial(1)) for _ in a]
    lost = [zeros(f32, block.layout.partial(1)) for _ in a] if many.dtype == f32 else []

    def step(chunk: IntLike) -> None:
        v = b(chunk)
        for m, row in enumerate(a):
            term = (row(chunk) * v).sum(1, within=thread)
            if lost:
                add_compensated(sums[m], lost[m], term)
            else:
                sums[m][:] = sums[m] + term

    block.each(step)
    for own, to in zip(sums, stored, strict=True):
        block.store_one(block.across(own, add), to)


def few_rows(dtype: DType, count: int) -> Template:
    """C = A @ B^T, of so many rows of A."""

    @kernel(configs=_configs(dtype, count), name=f"gemm_of_{count}_{dtype}")
    def made(
        A: Tensor[f"{count} K", dtype], B: Tensor["N K", dtype], C: Tensor[f"{count} N", dtype], *, cfg: Rows
    ) -> None:
        _sums(A, B, [C[m] for m in range(count)], cfg)
        of_a, of_b = elements(A), elements(B)
        assert_equals(C, lambda m, n: total(lambda k: of_a(m, k) * of_b(n, k), over=B.shape[1]))

    return made


def few_columns(dtype: DType, count: int) -> Template:
    """C = A @ B^T, of so many rows of B."""

    @kernel(configs=_configs(dtype, count), name=f"gemm_with_{count}_{dtype}")
    def made(
        A: Tensor["M K", dtype], B: Tensor[f"{count} K", dtype], C: Tensor[f"M {count}", dtype], *, cfg: Rows
    ) -> None:
        _sums(B, A, [C.T[n] for n in range(count)], cfg)
        of_a, of_b = elements(A), elements(B)
        assert_equals(C, lambda m, n: total(lambda k: of_a(m, k) * of_b(n, k), over=A.shape[1]))

    return made


FAMILIES: dict[str, dict[int, Template]] = {
    name: {count: few_rows(dtype, count) for count in range(1, MOST + 1)}
    for name, dtype in (("gemm_nt", bf16), ("gemm_nt_f16", f16), ("gemm_nt_f32", f32))
}
"""By the names of the kernels for aligned rows, and by the number of rows of A."""
COLUMNS: dict[int, Template] = {count: few_columns(f32, count) for count in range(1, MOST + 1)}
"""Of f32, by the number of rows of B."""
