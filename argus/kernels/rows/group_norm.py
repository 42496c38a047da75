"""Group norm: of the channels of each group, with a weight and a bias for each channel."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from argus.kernels.rows import formulas
from argus.kernels.rows.configs import TYPES, row_kernel
from argus.kernels.rows.norms import normed
from argus.kernels.schedules.rows import Block, Rows
from argus.language import DType, Int, Template, Tensor, assert_equals, assume, elements, f32, maximum


def group_norm(dtype: DType) -> Template:
    """Y[r, n] = (X[r, n] - mean) W[g, k] / sqrt(variance + eps) + B[g, k], with mean and variance of X[r].

    A row is a group of one sample: its K channels, each of S elements. Row r is of group g = r % G, and column n of
    the group's channel k = n // S, which is (n // v) // (S // v) for the v elements of an access, which divide S.
    """

    @row_kernel("group_norm", dtype, "thrice")
    def made(
        X: Tensor["R N", dtype],
        W: Tensor["G K", dtype],
        B: Tensor["G K", dtype],
        eps: Tensor["1", f32],
        Y: Tensor["R N", dtype],
        *,
        S: Int,
        cfg: Rows,
    ) -> None:
        (R, N), (G, K) = X.shape, W.shape
        assume(G >= 1)
        assume(S >= 1)
        assume(S % cfg.vector == 0)
        assume(N == K * S)
        vectors = maximum(S // cfg.vector, 1)

        def channel(r: Int, n: Int) -> tuple[Int, Int]:
            return r % G, n // cfg.vector // vectors

        block = Block(cfg, R, N)
        found = normed(block, dtype, block.rows(X), block.chosen(W, channel), block.chosen(B, channel), eps)
        block.each(lambda chunk: block.store(found(chunk), Y, chunk))
        assert_equals(Y, formulas.group_norm(elements(X), W, B, eps, N, cfg.vector, S // cfg.vector))

    return made


group_norm_bf16, group_norm_f16, group_norm_f32 = map(group_norm, TYPES)
