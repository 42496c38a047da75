"""FP8 GEMM with one scale per tensor: C = scale_a * scale_b * (A @ B^T) of e4m3, accumulated by wgmma, in bf16."""

# ruff: noqa: UP037
# Reason: a number in quotes is an extent.

from __future__ import annotations

from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import Deferred, TileCoord, of_each
from argus.kernels.schedules.hopper import Hopper, hopper_cooperative, hopper_pingpong
from argus.kernels.schedules.ragged import Ragged, hopper_ragged
from argus.language import Fragment, Tensor, bf16, e4m3, f32, kernel, load

CONFIGS: dict[str, Hopper | Ragged] = {
    "by_rows": Hopper(bk=128),
    "super_tiled": Hopper(bk=128, group=8),
    "clustered": Hopper(bk=128, cluster=(2, 1)),
    "clustered_bands": Hopper(bk=128, cluster=(2, 1), group=8),
    "whole": Hopper(bk=128, stages=3, whole=True, group=8),
    "whole_pairs": Hopper(bk=128, stages=3, whole=True, cluster=(2, 1)),
    "whole_bands": Hopper(bk=128, stages=3, whole=True, cluster=(2, 1), group=8),
    "columns_192": Hopper(bn=192, bk=128, cluster=(2, 1), whole=True),
    "columns_128": Hopper(bn=128, bk=128, stages=6, cluster=(1, 2)),
    "columns_64": Hopper(bn=64, bk=128, stages=8),
    "ragged": Ragged(bk=128),
    "pingpong": Hopper(bm=64, bk=128, pingpong=True, group=16),
}


@kernel(configs=CONFIGS)
def gemm_fp8(
    A: Tensor["M K", e4m3],
    B: Tensor["N K", e4m3],
    scale_a: Tensor["1", f32],
    scale_b: Tensor["1", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Hopper | Ragged,
) -> None:
    """C = scale_a * scale_b * (A @ B^T)."""
    problem = Contraction(A, B, C)
    loaded: list[Fragment] = []

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        del at
        if not loaded:  # once per tile, for all of its parts
            loaded.append(load(scale_a[0], acc.layout.axis()) * load(scale_b[0], acc.layout.axis()))
        return lambda: acc * loaded[0]

    if isinstance(cfg, Ragged):
        hopper_ragged(problem, cfg, epilogue)
    elif cfg.pingpong:
        hopper_pingpong(problem, cfg, of_each(epilogue))
    elif len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, of_each(epilogue))
    else:
        hopper_cooperative(problem, cfg, of_each(epilogue))
    problem.finish()
