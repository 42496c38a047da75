"""A layer of experts of e4m3 with scales of blocks; what the first product gives is gated, scaled and rounded anew.

Six launches: rows of tokens and their scales are copied in the order of experts, multiplied by the first matrices,
gated and rounded with scales of their own, multiplied by the second matrices, and added up for each token. Each launch
claims a formula of what it reads; there is none of all launches. On MI300X elements are e4m3fnuz, whose largest number
is 240.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves both types.
# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from collections.abc import Mapping

from attrs import field, frozen

from argus.kernels.grouped_fp8 import grouped_fp8_blocks
from argus.kernels.grouped_fp8_cdna3 import CONFIGS as PRODUCTS
from argus.kernels.grouped_fp8_cdna3 import grouped_fp8_fnuz_blocks
from argus.kernels.moe_ends import ends
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped_blocks import GroupedBlocks
from argus.kernels.schedules.grouped_few_blocks import GroupedFewBlocks
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.moe_rows import RowCopies, RowCopiesCdna3, RowSums, RowSumsCdna3, gather_rows
from argus.kernels.schedules.moe_scaled import ScaledRows, ScaledRowsCdna3, gather_scales, quantise_gated
from argus.language import DType, ProgramTemplate, Tensor, bf16, e4m3, e4m3fnuz, f32, i32, kernel, program, workspace


@frozen
class ScaledExperts:
    """The configurations of the launches: of both products, copies of rows, scales, and sums."""

    products: GroupedBlocks | GroupedFewBlocks | Cdna3Interleaved = field(factory=GroupedBlocks)
    copies: RowCopies = field(factory=RowCopies)
    scales: ScaledRows = field(factory=ScaledRows)
    sums: RowSums = field(factory=RowSums)

    @property
    def bm(self) -> int:
        """The most rows of a tile."""
        return self.products.bm


_ROWS_CDNA3 = RowCopiesCdna3(), ScaledRowsCdna3(), RowSumsCdna3()
CONFIGS = {
    "super_tiled": ScaledExperts(),
    "by_rows": ScaledExperts(GroupedBlocks(group=0)),
    "rows_16": ScaledExperts(GroupedFewBlocks(16)),
    "rows_32": ScaledExperts(GroupedFewBlocks(32, 4, 128, 2)),
}
CONFIGS_CDNA3 = {name: ScaledExperts(each, *_ROWS_CDNA3) for name, each in PRODUCTS.items()}


@kernel
def moe_gather_scales(
    scale_x: Tensor["T KB", f32], tokens: Tensor["R", i32], scale_a: Tensor["KB R", f32], *, cfg: ScaledRows
) -> None:
    """scale_a[b, r] = scale_x[tokens[r], b]."""
    gather_scales(scale_x, tokens, scale_a, cfg)


def family(kind: DType, activation: Activation) -> ProgramTemplate:
    """The program for elements of this type."""
    _, moe_sum = ends(bf16)
    name = "fp8" if kind == e4m3 else "fnuz"
    configs, multiply = (CONFIGS, grouped_fp8_blocks) if kind == e4m3 else (CONFIGS_CDNA3, grouped_fp8_fnuz_blocks)
    of_x, of_rows = Tensor["T K", kind], Tensor["R K", kind]

    @kernel(name=f"moe_gather_{name}")
    def moe_gather(X: of_x, tokens: Tensor["R", i32], A: of_rows, *, cfg: RowCopies) -> None:
        """A[r] = X[tokens[r]]."""
        gather_rows(X, tokens, A, cfg)

    @kernel(name=f"moe_gated_{name}")
    def moe_gated(
        G: Tensor["R U", bf16], H: Tensor["R N", kind], scale_h: Tensor["NB R", f32], *, cfg: ScaledRows
    ) -> None:
        """H * scale_h = activation(gate) * up, rounded."""
        quantise_gated(G, H, scale_h, activation, cfg)

    @program(configs=configs, name=f"moe_{name}")
    def moe_scaled(
        X: of_x,
        scale_x: Tensor["T KB", f32],
        W: Tensor["E U K", kind],
        scale_w: Tensor["E UB KB", f32],
        V: Tensor["E K N", kind],
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
        A, H = workspace(kind, (R, K)), workspace(kind, (R, N))
        G, D = workspace(bf16, (R, U)), workspace(bf16, (R, K))
        scale_a, scale_h = workspace(f32, (KB, R)), workspace(f32, (NB, R))
        moe_gather(X, tokens, A, cfg=cfg.copies)
        moe_gather_scales(scale_x, tokens, scale_a, cfg=cfg.scales)
        lists = starts, tile_starts, tile_experts
        multiply(A, W, scale_a, scale_w, *lists, G, cfg=cfg.products)
        moe_gated(G, H, scale_h, cfg=cfg.scales)
        multiply(H, V, scale_h, scale_v, *lists, D, cfg=cfg.products)
        moe_sum(D, weights, ids, starts, tokens, inverse, Y, cfg=cfg.sums)

    return moe_scaled


FAMILIES: Mapping[tuple[str, Activation], ProgramTemplate] = {
    (str(kind), activation): family(kind, activation) for kind in (e4m3, e4m3fnuz) for activation in ACTIVATIONS
}
"""The programs by element type and activation."""
