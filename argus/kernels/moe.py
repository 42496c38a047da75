"""A layer of experts: each token's row meets the matrices of its own experts, and their results are summed by weight.

A program of four launches: rows of tokens are copied in the order of experts, multiplied by the first matrices, gated,
multiplied by the second ones, and added up for each token. Or of three, where the first product gathers rows by token.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.moe_ends import CDNA3, claim_layer, ends
from argus.kernels.schedules.grouped import Grouped, GroupedContraction
from argus.kernels.schedules.grouped_by_target import Listed, multiply, multiply_gated
from argus.kernels.schedules.grouped_few import GroupedFew
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.grouped_gathered import (
    GatheredFew,
    gated_row_of_token,
    hopper_gated_gathered,
    rows_of_tokens,
)
from argus.kernels.schedules.moe_rows import RowCopies, RowCopiesCdna3, RowSums, RowSumsCdna3
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace


@frozen
class Experts:
    """The configurations of the launches: of the first product, the second, copies and sums."""

    first: Listed | GatheredFew = field(factory=Grouped)
    second: Listed = field(factory=Grouped)
    copies: RowCopies = field(factory=RowCopies)
    sums: RowSums = field(factory=RowSums)

    @property
    def bm(self) -> int:
        """The most rows of a tile, of both products."""
        return self.first.bm


_NARROW = Grouped(bn=128, stages=6, group=0)
CONFIGS = {
    "columns_256": Experts(),
    "by_rows": Experts(Grouped(group=0), Grouped(group=0)),
    "narrow": Experts(_NARROW, _NARROW),
    "rows_16": Experts(GroupedFew(16, 64, 8), GroupedFew(16, 64, 8, 128)),
    "rows_32": Experts(GroupedFew(32, 64, 8), GroupedFew(32, 64, 8, 128)),
    "gathered_16": Experts(GatheredFew(16), GroupedFew(16, 64, 8, 128)),
    "gathered_32": Experts(GatheredFew(32), GroupedFew(32, 64, 8, 128)),
    **{name: Experts(each, each, RowCopiesCdna3(), RowSumsCdna3()) for name, each in CDNA3.items()},
}
"""On an H200, and those named `interleaved` on an MI300X."""


def family(dtype: DType, activation: Activation) -> ProgramTemplate:
    """The program for elements of this type."""
    of_x, of_rows, of_both = Tensor["T K", dtype], Tensor["R K", dtype], Tensor["E 2 N K", dtype]
    of_hidden, of_down = Tensor["R N", dtype], Tensor["E K N", dtype]
    of_choices, of_factors = Tensor["T J", i32], Tensor["T J", f32]
    of_starts, of_tokens, of_firsts, of_owners = (Tensor[size, i32] for size in ("S", "R", "Q", "P"))
    moe_gather, moe_sum = ends(dtype)

    @kernel
    def moe_first(
        A: of_rows,
        W: of_both,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        H: of_hidden,
        *,
        cfg: Listed,
    ) -> None:
        """H[r] = activation(W[e, 0] A[r]) * (W[e, 1] A[r])."""
        problem = GroupedContraction(A, W[:, 0], H, starts, tile_starts, tile_experts, cfg.bm)
        multiply_gated(problem, W[:, 1], activation, cfg)

    @kernel
    def moe_first_gathered(
        X: of_x,
        tokens: of_tokens,
        W: of_both,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        H: of_hidden,
        *,
        cfg: GatheredFew,
    ) -> None:
        """H[r] = activation(W[e, 0] X[tokens[r]]) * (W[e, 1] X[tokens[r]])."""
        both, activated = (W[:, 0], W[:, 1]), ACTIVATIONS[activation]
        rows = rows_of_tokens(X, tokens)
        problem = GroupedContraction(rows, both[0], H, starts, tile_starts, tile_experts, cfg.bm)
        hopper_gated_gathered(problem, X, tokens, both[1], lambda gated, acc: activated(gated) * acc, cfg)
        problem.claim(lambda e, r, n: gated_row_of_token(X, tokens, both, activation, (e, r, n)))

    @kernel
    def moe_second(
        H: of_hidden,
        V: of_down,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        D: of_rows,
        *,
        cfg: Listed,
    ) -> None:
        """D[r] = V[e] H[r]."""
        multiply(GroupedContraction(H, V, D, starts, tile_starts, tile_experts, cfg.bm), cfg)

    @program(configs=CONFIGS)
    def moe(
        X: of_x,
        W: of_both,
        V: of_down,
        ids: of_choices,
        weights: of_factors,
        starts: of_starts,
        tokens: of_tokens,
        inverse: of_choices,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        Y: of_x,
        *,
        cfg: Experts,
    ) -> None:
        """Y[t] = sum over j of weights[t, j] * V[e] (activation(W[e, 0] X[t]) * (W[e, 1] X[t])), with e = ids[t, j]."""
        (_, _, N, K), (R,) = W.shape, tokens.shape
        H, D = (workspace(dtype, (R, extent)) for extent in (N, K))
        lists = starts, tile_starts, tile_experts
        if isinstance(cfg.first, GatheredFew):
            moe_first_gathered(X, tokens, W, *lists, H, cfg=cfg.first)
        else:
            A = workspace(dtype, (R, K))
            moe_gather(X, tokens, A, cfg=cfg.copies)
            moe_first(A, W, *lists, H, cfg=cfg.first)
        moe_second(H, V, *lists, D, cfg=cfg.second)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)
        claim_layer(X, (W, V), (ids, weights), Y, activation)

    return moe


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(dtype), activation): family(dtype, activation) for dtype in (bf16, f16) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
