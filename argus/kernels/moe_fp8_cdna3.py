"""A layer of experts of e4m3fnuz on MI300X, with scales of blocks: the program of `argus.kernels.moe_fp8`.

What an expert computes between its products is gated and rounded to e4m3fnuz, whose largest number is 240.
"""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.grouped_fp8_cdna3 import CONFIGS as PRODUCTS
from argus.kernels.grouped_fp8_cdna3 import grouped_fp8_fnuz_blocks
from argus.kernels.moe_ends import ends
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.moe_rows import RowCopiesCdna3, RowSumsCdna3, gather_rows
from argus.kernels.schedules.moe_scaled import ScaledRowsCdna3, gather_scales, quantise_gated
from argus.language import ProgramTemplate, Tensor, bf16, e4m3fnuz, f32, i32, kernel, program, workspace


@frozen
class ScaledExpertsCdna3:
    """The configurations of the launches: of both products, copies of rows, scales, and sums."""

    products: Cdna3Interleaved
    copies: RowCopiesCdna3 = field(factory=RowCopiesCdna3)
    scales: ScaledRowsCdna3 = field(factory=ScaledRowsCdna3)
    sums: RowSumsCdna3 = field(factory=RowSumsCdna3)

    @property
    def bm(self) -> int:
        """The most rows of a tile."""
        return self.products.bm


CONFIGS = {name: ScaledExpertsCdna3(each) for name, each in PRODUCTS.items()}


@kernel
def moe_gather_fnuz(
    X: Tensor["T K", e4m3fnuz], tokens: Tensor["R", i32], A: Tensor["R K", e4m3fnuz], *, cfg: RowCopiesCdna3
) -> None:
    """A[r] = X[tokens[r]]."""
    gather_rows(X, tokens, A, cfg)


@kernel
def moe_gather_scales(
    scale_x: Tensor["T KB", f32], tokens: Tensor["R", i32], scale_a: Tensor["KB R", f32], *, cfg: ScaledRowsCdna3
) -> None:
    """scale_a[b, r] = scale_x[tokens[r], b]."""
    gather_scales(scale_x, tokens, scale_a, cfg)


def family(activation: Activation) -> ProgramTemplate:
    """The program."""
    _, moe_sum = ends(bf16)

    @kernel
    def moe_gated_fnuz(
        G: Tensor["R U", bf16], H: Tensor["R N", e4m3fnuz], scale_h: Tensor["NB R", f32], *, cfg: ScaledRowsCdna3
    ) -> None:
        """H * scale_h = activation(gate) * up, rounded."""
        quantise_gated(G, H, scale_h, activation, cfg)

    @program(configs=CONFIGS)
    def moe_fnuz(
        X: Tensor["T K", e4m3fnuz],
        scale_x: Tensor["T KB", f32],
        W: Tensor["E U K", e4m3fnuz],
        scale_w: Tensor["E UB KB", f32],
        V: Tensor["E K N", e4m3fnuz],
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
        cfg: ScaledExpertsCdna3,
    ) -> None:
        """As `argus.kernels.moe`, of operands times their scales."""
        (R,), (_, U, K), (_, KB, NB), N = tokens.shape, W.shape, scale_v.shape, V.shape[2]
        A, H = workspace(e4m3fnuz, (R, K)), workspace(e4m3fnuz, (R, N))
        G, D = workspace(bf16, (R, U)), workspace(bf16, (R, K))
        scale_a, scale_h = workspace(f32, (KB, R)), workspace(f32, (NB, R))
        lists = starts, tile_starts, tile_experts
        moe_gather_fnuz(X, tokens, A, cfg=cfg.copies)
        moe_gather_scales(scale_x, tokens, scale_a, cfg=cfg.scales)
        grouped_fp8_fnuz_blocks(A, W, scale_a, scale_w, *lists, G, cfg=cfg.products)
        moe_gated_fnuz(G, H, scale_h, cfg=cfg.scales)
        grouped_fp8_fnuz_blocks(H, V, scale_h, scale_v, *lists, D, cfg=cfg.products)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)

    return moe_fnuz


FAMILIES: Mapping[Activation, ProgramTemplate] = {activation: family(activation) for activation in ACTIVATIONS}
"""The programs by activation."""
