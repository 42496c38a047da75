"""A layer of experts on MI300X: the program of `argus.kernels.moe`, with grouped products of that target."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.grouped import CONFIGS as PRODUCTS
from argus.kernels.moe_ends import claim_layer, ends
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import GroupedContraction
from argus.kernels.schedules.grouped_cdna3 import cdna3_grouped, cdna3_grouped_gated
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.moe_rows import RowCopiesCdna3, RowSumsCdna3
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace


@frozen
class ExpertsCdna3:
    """The configurations of the launches: of both products, copies and sums."""

    products: Cdna3Interleaved
    copies: RowCopiesCdna3 = field(factory=RowCopiesCdna3)
    sums: RowSumsCdna3 = field(factory=RowSumsCdna3)

    @property
    def bm(self) -> int:
        """The most rows of a tile."""
        return self.products.bm


CONFIGS = {
    name: ExpertsCdna3(each) for name, each in PRODUCTS.items() if isinstance(each, Cdna3Interleaved) and each.bm <= 128
}
"""With the configurations of grouped products whose gated sums the registers hold."""


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
        cfg: Cdna3Interleaved,
    ) -> None:
        """H[r] = activation(W[e, 0] A[r]) * (W[e, 1] A[r])."""
        problem = GroupedContraction(A, W[:, 0], H, starts, tile_starts, tile_experts, cfg.bm)
        cdna3_grouped_gated(problem, W[:, 1], activation, cfg)

    @kernel
    def moe_second(
        H: of_hidden,
        V: of_down,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        D: of_rows,
        *,
        cfg: Cdna3Interleaved,
    ) -> None:
        """D[r] = V[e] H[r]."""
        cdna3_grouped(GroupedContraction(H, V, D, starts, tile_starts, tile_experts, cfg.bm), cfg)

    @program(configs=CONFIGS)
    def moe_cdna3(
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
        cfg: ExpertsCdna3,
    ) -> None:
        """As `argus.kernels.moe`."""
        (_, _, N, K), (R,) = W.shape, tokens.shape
        A, H, D = (workspace(dtype, (R, extent)) for extent in (K, N, K))
        lists = starts, tile_starts, tile_experts
        moe_gather(X, tokens, A, cfg=cfg.copies)
        moe_first(A, W, *lists, H, cfg=cfg.products)
        moe_second(H, V, *lists, D, cfg=cfg.products)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)
        claim_layer(X, (W, V), (ids, weights), Y, activation)

    return moe_cdna3


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(dtype), activation): family(dtype, activation) for dtype in (bf16, f16) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
