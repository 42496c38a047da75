"""A layer of experts for few tokens, whose time is that of reading the matrices: the program of `argus.kernels.moe`.

Its products are those of `argus.kernels.schedules.grouped_few`, which list no tiles.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.moe_ends import claim_layer, ends
from argus.kernels.schedules.grouped_few import (
    GroupedFew,
    PackedExperts,
    hopper_gated_few,
    hopper_grouped_few,
    product_of,
)
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation, gated_element
from argus.kernels.schedules.moe_rows import RowCopies, RowSums
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace


@frozen
class FewExperts:
    """The configurations of the launches: of the first product, the second, copies and sums."""

    first: GroupedFew
    second: GroupedFew
    copies: RowCopies = field(factory=RowCopies)
    sums: RowSums = field(factory=RowSums)


CONFIGS = {
    "rows_8": FewExperts(GroupedFew(8, 128, 4), GroupedFew(8, 256, 4)),
    "rows_16": FewExperts(GroupedFew(16, 64, 8), GroupedFew(16, 64, 8, 128)),
    "rows_32": FewExperts(GroupedFew(32, 64, 8), GroupedFew(32, 64, 8, 128)),
}


def family(dtype: DType, activation: Activation) -> ProgramTemplate:
    """The program for elements of this type."""
    of_x, of_rows, of_both = Tensor["T K", dtype], Tensor["R K", dtype], Tensor["E 2 N K", dtype]
    of_hidden, of_down = Tensor["R N", dtype], Tensor["E K N", dtype]
    of_choices, of_factors = Tensor["T J", i32], Tensor["T J", f32]
    of_starts, of_tokens = Tensor["S", i32], Tensor["R", i32]
    moe_gather, moe_sum = ends(dtype)

    @kernel
    def moe_first(A: of_rows, W: of_both, starts: of_starts, H: of_hidden, *, cfg: GroupedFew) -> None:
        """H[r] = activation(W[e, 0] A[r]) * (W[e, 1] A[r])."""
        gate, up = W[:, 0], W[:, 1]
        problem = PackedExperts(A, gate, H, starts)
        hopper_gated_few(problem, up, lambda gated, acc: ACTIVATIONS[activation](gated) * acc, cfg)
        problem.claim(lambda row, e, n: gated_element(A, gate, up, activation, (e, row[0], n)))

    @kernel
    def moe_second(H: of_hidden, V: of_down, starts: of_starts, D: of_rows, *, cfg: GroupedFew) -> None:
        """D[r] = V[e] H[r]."""
        problem = PackedExperts(H, V, D, starts)
        hopper_grouped_few(problem, cfg)
        problem.claim(product_of(H, V))

    @program(configs=CONFIGS)
    def moe_few(
        X: of_x,
        W: of_both,
        V: of_down,
        ids: of_choices,
        weights: of_factors,
        starts: of_starts,
        tokens: of_tokens,
        inverse: of_choices,
        Y: of_x,
        *,
        cfg: FewExperts,
    ) -> None:
        """As `argus.kernels.moe`."""
        (_, _, N, K), (R,) = W.shape, tokens.shape
        A, H, D = (workspace(dtype, (R, extent)) for extent in (K, N, K))
        moe_gather(X, tokens, A, cfg=cfg.copies)
        moe_first(A, W, starts, H, cfg=cfg.first)
        moe_second(H, V, starts, D, cfg=cfg.second)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)
        claim_layer(X, (W, V), (ids, weights), Y, activation)

    return moe_few


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(dtype), activation): family(dtype, activation) for dtype in (bf16, f16) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
