"""GEMM, C = A @ B^T: bf16 in, fp32 accumulation, bf16 out, for every M, N and K: one claim, one schedule per kind."""

from __future__ import annotations

from typing import assert_never

from argus.kernels.config_names import config_of
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong, cdna3_double_buffer, cdna3_pingpong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.cdna3_staged import Cdna3Staged, cdna3_staged
from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import identity, of_each
from argus.kernels.schedules.hopper import Hopper, hopper_cooperative, hopper_pingpong
from argus.kernels.schedules.narrow import Narrow, hopper_narrow
from argus.kernels.schedules.skinny import Skinny, hopper_skinny
from argus.kernels.schedules.split import Split, hopper_split
from argus.kernels.schedules.staged import Staged, hopper_staged
from argus.language import Tensor, bf16, kernel

Config = Cdna3 | Cdna3Interleaved | Cdna3PingPong | Cdna3Staged | Hopper | Narrow | Skinny | Split | Staged
CONFIGS: dict[str, Config] = {
    "cdna3": Cdna3(),
    "cdna3_pingpong": Cdna3PingPong(),
    "interleaved": Cdna3Interleaved(),
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, agprs=False, free=True),
    "interleaved_any": Cdna3Interleaved(bm=128, bn=128, wide=False, agprs=False, free=True),
    "interleaved_pairs": Cdna3Interleaved(bm=128, bn=128, wide=False, ordered=False, agprs=False, align=4),
    "interleaved_narrow": Cdna3Interleaved(bm=128, bn=128, wide=False, ordered=False, agprs=False, align=2),
    "cooperative": Hopper(),
    "super_tiled": Hopper(group=8),
    "clustered": Hopper(cluster=(2, 1)),
    "clustered_bands": Hopper(cluster=(2, 1), group=8),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
    "rows_64_32": Hopper(bm=64, bn=32, stages=8, pingpong=True),
    "rows_64_64": Hopper(bm=64, bn=64, stages=8, pingpong=True),
    "rows_64_96": Hopper(bm=64, bn=96, stages=8, pingpong=True),
    "rows_64_128": Hopper(bm=64, bn=128, stages=8, pingpong=True, group=8),
    "rows_64_192": Hopper(bm=64, bn=192, stages=6, pingpong=True, group=8),
    "small": Hopper(bn=128, stages=2),
    "columns_224": Hopper(bn=224, cluster=(2, 1)),
    "columns_192": Hopper(bn=192, cluster=(2, 1), whole=True),
    "columns_192_pairs": Hopper(bn=192, cluster=(1, 2)),
    "columns_160": Hopper(bn=160, stages=5, cluster=(1, 2)),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "columns_96": Hopper(bn=96, stages=7, cluster=(1, 2)),
    "columns_64": Hopper(bn=64, stages=8),
    "columns_64_pairs": Hopper(bn=64, stages=8, cluster=(1, 2)),
    "tall_32": Hopper(bn=32, stages=8, cluster=(2, 1)),
    "columns_32_fours": Hopper(bn=32, stages=8, cluster=(1, 4)),
    "columns_64_fours": Hopper(bn=64, stages=8, cluster=(1, 4)),
    "columns_96_fours": Hopper(bn=96, stages=6, cluster=(1, 4)),
    "tall_96": Hopper(bn=96, stages=6, cluster=(2, 1)),
    "tall_64_fours": Hopper(bn=64, stages=8, cluster=(4, 1)),
    "tall_96_fours": Hopper(bn=96, stages=6, cluster=(4, 1)),
    "tall_160_fours": Hopper(bn=160, stages=5, cluster=(4, 1)),
    "tall_224_fours": Hopper(bn=224, stages=4, cluster=(4, 1)),
    "clustered_any": Hopper(cluster=(2, 1), group=8, single=True),
    "columns_128_any": Hopper(bn=128, stages=6, cluster=(1, 2), single=True),
    "rows_64_128_any": Hopper(bm=64, bn=128, stages=8, pingpong=True, single=True),
    "rows_64_64_any": Hopper(bm=64, bn=64, stages=8, pingpong=True, single=True),
    "skinny_8": Skinny(bm=8, stages=12),
    "skinny": Skinny(bm=16, bk=256, stages=5),
    "skinny_40": Skinny(bm=40),
    "skinny_64": Skinny(bm=64, stages=6),
    "skinny_72": Skinny(bm=72, stages=6),
    "skinny_104": Skinny(bm=104, bk=64, stages=7, bn=128),
    "skinny_136": Skinny(bm=136, bk=64, stages=6, bn=128),
    "skinny_152": Skinny(bm=152, bk=64, stages=6, bn=128),
    "skinny_112_pairs": Skinny(bm=112, bk=64, stages=7, bn=128, peers=2),
    "skinny_144_pairs": Skinny(bm=144, bk=64, stages=6, bn=128, peers=2),
    "skinny_160_pairs": Skinny(bm=160, bk=64, stages=6, bn=128, peers=2),
    "skinny_208_pairs": Skinny(bm=208, bk=64, stages=5, bn=128, peers=2),
    "skinny_224": Skinny(bm=224, bk=64, stages=5, bn=128),
    "narrow": Narrow(),
    "narrow_32": Narrow(bn=32),
    "single_16": Staged(bn=16, bk=64, stages=8, tma=True, swizzle=128),
    "single_32": Staged(bn=32, bk=128, stages=4, tma=True, swizzle=128),
    "single_64": Staged(bk=64, stages=8, tma=True, swizzle=128),
    "split_32_4": Split(bm=64, bn=32, stages=8, splits=4),
    "split_64_8": Split(bm=64, bn=64, stages=8, splits=8),
    "split_2": Split(splits=2),
    "split_4": Split(splits=4),
    "split_8": Split(splits=8),
    "shares_16": Split(bm=64, bn=16, stages=18, swap_ab=True),
    "shares_16_two": Split(bm=64, bn=16, stages=10, swap_ab=True),
    "shares_16_128": Split(bn=16, swap_ab=True),
    "shares_32_4": Split(bm=64, bn=32, stages=8, splits=4, swap_ab=True),
    "shares_32": Split(bm=64, bn=32, stages=15, swap_ab=True),
    "shares_48": Split(bm=64, bn=48, stages=14, swap_ab=True),
    "shares_64": Split(bm=64, bn=64, stages=12, swap_ab=True),
    "shares_80": Split(bm=64, bn=80, stages=10, swap_ab=True),
    "shares_112": Split(bm=64, bn=112, stages=8, swap_ab=True),
    "shares_144": Split(bm=128, bn=144, stages=4, swap_ab=True),
    "shares_144_3": Split(bm=128, bn=144, stages=4, splits=3, swap_ab=True),
}
"""`pairs` and `fours`: clusters of so many CTAs, which share a tile of A, in tall ones of B.

Split-K: `split_S` by S CTAs, `split_N_S` of tiles of 64 x N; `shares_R` with swap-AB of R rows of A per tile, by two
CTAs, `shares_R_S` by S; `shares_16_two` leaves room for two CTAs on an SM, `shares_16_128` has tiles of 128 rows of B.
"""


@kernel(configs=CONFIGS)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    """C = A @ B^T; all schedules share this claim."""
    multiply(Contraction(A, B, C), cfg)


def multiply(problem: Contraction, cfg: Config) -> None:
    """Trace the schedule of a configuration, and state the claim."""
    match cfg:
        case Cdna3():
            cdna3_double_buffer(problem, cfg)
        case Cdna3Interleaved():
            cdna3_interleaved(problem, cfg)
        case Cdna3PingPong():
            cdna3_pingpong(problem, cfg)
        case Cdna3Staged():
            cdna3_staged(problem, cfg)
        case Hopper(pingpong=True):
            hopper_pingpong(problem, cfg, of_each(identity))
        case Hopper(cluster=(1,)):
            hopper_cooperative(problem, cfg, of_each(identity))
        case Hopper():
            hopper_clustered(problem, cfg, of_each(identity))
        case Skinny():
            hopper_skinny(problem, cfg)
        case Narrow():
            hopper_narrow(problem, cfg)
        case Split():
            hopper_split(problem, cfg)
        case Staged():
            hopper_staged(problem, cfg)
        case _:
            assert_never(cfg)
    problem.finish()


KINDS = (Hopper, Skinny, Narrow, Split, Staged, Cdna3, Cdna3Interleaved, Cdna3PingPong, Cdna3Staged)


def configuration(name: str) -> Config | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, KINDS)
