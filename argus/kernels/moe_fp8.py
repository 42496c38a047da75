"""A layer of experts of e4m3 with scales of blocks; what the first product gives is gated, scaled and rounded anew.

Six launches: rows of tokens and their scales are copied in the order of experts, multiplied by the first matrices,
gated and rounded with scales of their own, multiplied by the second matrices, and added up for each token. Each launch
claims a formula of what it reads; there is none of all launches.
"""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.grouped_fp8 import grouped_fp8_blocks
from argus.kernels.moe_ends import ends
from argus.kernels.schedules.grouped_blocks import GroupedBlocks
from argus.kernels.schedules.grouped_few_blocks import GroupedFewBlocks
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.moe_rows import RowCopies, RowSums, gather_rows
from argus.kernels.schedules.moe_scaled import ScaledRows, gather_scales, quantise_gated
from argus.language import ProgramTemplate, Tensor, bf16, e4m3, f32, i32, kernel, program, workspace


@frozen
class ScaledExperts:
    """The configurations of the launches: of both products, copies of rows, scales, and sums."""

    products: GroupedBlocks | GroupedFewBlocks = field(factory=GroupedBlocks)
    copies: RowCopies = field(factory=RowCopies)
    scales: ScaledRows = field(factory=ScaledRows)
    sums: RowSums = field(factory=RowSums)

    @property
    def bm(self) -> int:
        """The most rows of a tile."""
        return self.products.bm


CONFIGS = {
    "super_tiled": ScaledExperts(),
    "by_rows": ScaledExperts(GroupedBlocks(group=0)),
    "rows_16": ScaledExperts(GroupedFewBlocks(16)),
    "rows_32": ScaledExperts(GroupedFewBlocks(32, 4, 128, 2)),
}


@kernel
def moe_gather_fp8(X: Tensor["T K", e4m3], tokens: Tensor["R", i32], A: Tensor["R K", e4m3], *, cfg: RowCopies) -> None:
    """A[r] = X[tokens[r]]."""
    gather_rows(X, tokens, A, cfg)


@kernel
def moe_gather_scales(
    scale_x: Tensor["T KB", f32], tokens: Tensor["R", i32], scale_a: Tensor["KB R", f32], *, cfg: ScaledRows
) -> None:
    """scale_a[b, r] = scale_x[tokens[r], b]."""
    gather_scales(scale_x, tokens, scale_a, cfg)


def family(activation: Activation) -> ProgramTemplate:
    """The program."""
    _, moe_sum = ends(bf16)

    @kernel
    def moe_gated_fp8(
        G: Tensor["R U", bf16],
        H: Tensor["R N", e4m3],
        scale_h: Tensor["NB R", f32],
        *,
        cfg: ScaledRows,
    ) -> None:
        """H * scale_h = activation(gate) * up, rounded."""
        quantise_gated(G, H, scale_h, activation, cfg)

    @program(configs=CONFIGS)
    def moe_fp8(
        X: Tensor["T K", e4m3],
        scale_x: Tensor["T KB", f32],
        W: Tensor["E U K", e4m3],
        scale_w: Tensor["E UB KB", f32],
        V: Tensor["E K N", e4m3],
        scale_v: Tensor["E KB NB", f32],
        ids: Tensor["T J", i32],
        weights: Tensor["T J", f32],
        starts: Tensor["S", i32],
        tokens: Tensor["R", i32],
        inverse: Tensor["T J", i32],
        tile_starts: Tensor["Q", i32],
        tile_experts: Tensor["P", i32],
        Y: Tensor["T K", bf16],
        *,
        cfg: ScaledExperts,
    ) -> None:
        """As `argus.kernels.moe`, of operands times their scales."""
        (R,), (_, U, K), (_, KB, NB), N = tokens.shape, W.shape, scale_v.shape, V.shape[2]
        A, H = workspace(e4m3, (R, K)), workspace(e4m3, (R, N))
        G, D = workspace(bf16, (R, U)), workspace(bf16, (R, K))
        scale_a, scale_h = workspace(f32, (KB, R)), workspace(f32, (NB, R))
        moe_gather_fp8(X, tokens, A, cfg=cfg.copies)
        moe_gather_scales(scale_x, tokens, scale_a, cfg=cfg.scales)
        lists = starts, tile_starts, tile_experts
        grouped_fp8_blocks(A, W, scale_a, scale_w, *lists, G, cfg=cfg.products)
        moe_gated_fp8(G, H, scale_h, cfg=cfg.scales)
        grouped_fp8_blocks(H, V, scale_h, scale_v, *lists, D, cfg=cfg.products)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)

    return moe_fp8


FAMILIES: Mapping[Activation, ProgramTemplate] = {activation: family(activation) for activation in ACTIVATIONS}
"""The programs by activation."""
