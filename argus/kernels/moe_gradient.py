"""Gradients of a layer of experts: of tokens, of the weights of choices, and the rows whose products are those of
matrices.

A program of eight launches: rows of tokens, and of the result's gradient, are copied in the order of experts; what the
layer computed between its products is computed again, and its gradient; from these, row by row, what is left.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all types.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.moe_ends import CDNA3, ends
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import Grouped, GroupedContraction
from argus.kernels.schedules.grouped_by_target import add_halves, multiply, multiply_halves
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.grouped_halves import GroupedHalves
from argus.kernels.schedules.moe_gradient import (
    GATED,
    GATED_CDNA3,
    Gated,
    RowFactors,
    RowFactorsCdna3,
    weigh_choices,
)
from argus.kernels.schedules.moe_gradient_claims import LayerGradients
from argus.kernels.schedules.moe_rows import Routing, RowCopies, RowCopiesCdna3, RowSums, RowSumsCdna3, add_rows
from argus.kernels.schedules.rows import Rows
from argus.language import DType, ProgramTemplate, Tensor, bf16, f16, f32, i32, kernel, program, workspace


@frozen
class ExpertGradients:
    """The configurations of the launches: of the three products, copies, gates, factors and sums."""

    first: Grouped | Cdna3Interleaved = field(factory=Grouped)
    second: Grouped | Cdna3Interleaved = field(factory=Grouped)
    third: GroupedHalves | Cdna3Interleaved = field(factory=GroupedHalves)
    copies: RowCopies = field(factory=RowCopies)
    gates: Rows = GATED
    factors: RowFactors = field(factory=RowFactors)
    sums: RowSums = field(factory=RowSums)

    @property
    def bm(self) -> int:
        """The most rows of a tile, of all products."""
        return self.first.bm


def _cdna3(products: Cdna3Interleaved) -> ExpertGradients:
    """The launches on MI300X: all products by one configuration."""
    ends = RowCopiesCdna3(), GATED_CDNA3, RowFactorsCdna3(), RowSumsCdna3()
    return ExpertGradients(products, products, products, *ends)


CONFIGS = {
    "columns_256": ExpertGradients(),
    "by_rows": ExpertGradients(Grouped(group=0), Grouped(group=0), GroupedHalves(group=0)),
    **{name: _cdna3(each) for name, each in CDNA3.items()},
}


def family(dtype: DType, activation: Activation) -> ProgramTemplate:
    """The program for elements of this type."""
    of_x, of_rows, of_both = Tensor["T K", dtype], Tensor["R K", dtype], Tensor["E 2 N K", dtype]
    of_hidden, of_halves, of_down = Tensor["R N", dtype], Tensor["2 R N", dtype], Tensor["E K N", dtype]
    of_choices, of_factors, of_pairs = Tensor["T J", i32], Tensor["T J", f32], Tensor["R", f32]
    of_starts, of_tokens, of_firsts, of_owners = (Tensor[size, i32] for size in ("S", "R", "Q", "P"))
    moe_gather, _ = ends(dtype)

    @kernel
    def moe_halves(
        A: of_rows,
        W: of_both,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        Z: of_halves,
        *,
        cfg: Grouped | Cdna3Interleaved,
    ) -> None:
        """Z[i, r] = W[e, i] A[r]."""
        lists = starts, tile_starts, tile_experts
        halves = [GroupedContraction(A, W[:, i], Z[i], *lists, cfg.bm) for i in range(2)]
        multiply_halves(halves, W, Z, cfg)

    @kernel
    def moe_hidden_gradient(
        B: of_rows,
        V: of_down,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        dH: of_hidden,
        *,
        cfg: Grouped | Cdna3Interleaved,
    ) -> None:
        """dH[r] = V[e]^T B[r]."""
        multiply(GroupedContraction(B, V.mT, dH, starts, tile_starts, tile_experts, cfg.bm), cfg)

    @kernel
    def moe_gate_gradient(
        Z: of_halves,
        dH: of_hidden,
        weights: of_pairs,
        order: of_tokens,
        halves: of_halves,
        dZ: Tensor["R 2 N", dtype],
        H: of_hidden,
        dots: of_pairs,
        *,
        cfg: Rows,
    ) -> None:
        """The gradient of activation(Z[0, r]) * Z[1, r] for each row, in two orders, and of its factor."""
        Gated(Z, dH, weights, order, activation).differentiate(halves, dZ, H, dots, cfg)

    @kernel
    def moe_weight_gradient(
        dots: of_pairs,
        ids: of_choices,
        starts: of_starts,
        tokens: of_tokens,
        inverse: of_choices,
        dw: of_factors,
        *,
        cfg: RowFactors,
    ) -> None:
        """dw[t, j] = dots[inverse[t, j]]."""
        Routing(ids, starts, tokens, inverse)
        weigh_choices(dots, inverse, dw, cfg)

    @kernel
    def moe_row_gradient(
        halves: of_halves,
        W: of_both,
        starts: of_starts,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        dA: of_rows,
        *,
        cfg: GroupedHalves | Cdna3Interleaved,
    ) -> None:
        """dA[r] = W[e, 0]^T halves[0, r] + W[e, 1]^T halves[1, r]."""
        lists = starts, tile_starts, tile_experts
        products = [GroupedContraction(halves[i], W[:, i].mT, dA, *lists, cfg.bm) for i in range(2)]
        add_halves(products, halves, cfg)

    @kernel
    def moe_token_gradient(
        dA: of_rows,
        ids: of_choices,
        starts: of_starts,
        tokens: of_tokens,
        order: of_tokens,
        inverse: of_choices,
        dX: of_x,
        *,
        cfg: RowSums,
    ) -> None:
        """dX[t] = sum over j of dA[inverse[t, j]]."""
        add_rows(dA, None, Routing(ids, starts, tokens, inverse, order), dX, cfg)

    @program(configs=CONFIGS)
    def moe_gradient(
        X: of_x,
        W: of_both,
        V: of_down,
        G: of_x,
        ids: of_choices,
        weights: of_pairs,
        starts: of_starts,
        tokens: of_tokens,
        order: of_tokens,
        inverse: of_choices,
        tile_starts: of_firsts,
        tile_experts: of_owners,
        A: of_rows,
        B: of_rows,
        dZ: Tensor["R 2 N", dtype],
        H: of_hidden,
        dw: of_factors,
        dX: of_x,
        *,
        cfg: ExpertGradients,
    ) -> None:
        """The gradients of X and of the weights, from G, that of the layer's result.

        weights: of choices, in their order. A, B: the rows of X and of G in the order of experts. dZ: for each row, the
        gradient of its products with W, and H: what is multiplied by V, times the row's weight. The gradients of W[e]
        and V[e] are dZ^T A and B^T H over the rows of e.
        """
        (_, _, N, K), (R,) = W.shape, tokens.shape
        Z, halves = (workspace(dtype, (2, R, N)) for _ in range(2))
        dH, dots, dA = workspace(dtype, (R, N)), workspace(f32, (R,)), workspace(dtype, (R, K))
        lists, routing = (starts, tile_starts, tile_experts), (ids, starts, tokens)
        moe_gather(X, tokens, A, cfg=cfg.copies)
        moe_gather(G, tokens, B, cfg=cfg.copies)
        moe_halves(A, W, *lists, Z, cfg=cfg.first)
        moe_hidden_gradient(B, V, *lists, dH, cfg=cfg.second)
        moe_gate_gradient(Z, dH, weights, order, halves, dZ, H, dots, cfg=cfg.gates)
        moe_weight_gradient(dots, *routing, inverse, dw, cfg=cfg.factors)
        moe_row_gradient(halves, W, *lists, dA, cfg=cfg.third)
        moe_token_gradient(dA, *routing, order, inverse, dX, cfg=cfg.sums)
        LayerGradients(X, W, V, G, ids, weights, activation).claim(dw, dX)

    return moe_gradient


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(dtype), activation): family(dtype, activation) for dtype in (bf16, f16) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
