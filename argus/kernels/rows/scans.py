"""Cumulative sums of rows."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import TYPES, row_kernel
from argus.kernels.schedules.rows import Block, Rows
from argus.language import DType, Template, Tensor, assert_equals, elements


def cumsum(dtype: DType) -> Template:
    """Y[r, n] = the sum of X[r, j] over j <= n, in f32 before it is stored."""

    @row_kernel("cumsum", dtype, "in order")
    def made(X: Tensor["R N", dtype], Y: Tensor["R N", dtype], *, cfg: Rows) -> None:
        R, N = X.shape
        block = Block(cfg, R, N, cfg.in_order)
        x = block.rows(X)
        block.each_prefix(x, lambda chunk, sums: block.store(sums, Y, chunk))
        assert_equals(Y, formulas.cumulative_sum(elements(X)))

    return made


cumsum_bf16, cumsum_f16, cumsum_f32 = map(cumsum, TYPES)
