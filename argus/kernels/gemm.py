"""C = A @ B^T: bf16 in, fp32 accumulation, bf16 out, for every M, N and K: one claim, a schedule a configuration."""

from __future__ import annotations

from typing import assert_never

from argus.kernels.cdna3 import Cdna3, Cdna3PingPong, cdna3_double_buffer, cdna3_pingpong
from argus.kernels.clustered import hopper_clustered
from argus.kernels.contraction import Contraction
from argus.kernels.hopper import Hopper, hopper_cooperative, hopper_pingpong, identity
from argus.kernels.narrow import Narrow, hopper_narrow
from argus.kernels.select import cheapest
from argus.kernels.skinny import Skinny, hopper_skinny
from argus.kernels.split import Split, hopper_split
from argus.language import Tensor, bf16, kernel

Config = Cdna3 | Cdna3PingPong | Hopper | Narrow | Skinny | Split
CONFIGS: dict[str, Config] = {
    "cdna3": Cdna3(),
    "cdna3_pingpong": Cdna3PingPong(),
    "cooperative": Hopper(),
    "super_tiled": Hopper(group=8),
    "clustered": Hopper(cluster=(2, 1)),
    "clustered_bands": Hopper(cluster=(2, 1), group=8),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
    "small": Hopper(bn=128, stages=2),
    "columns_224": Hopper(bn=224),
    "columns_192": Hopper(bn=192, cluster=(2, 1), whole=True),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "columns_64": Hopper(bn=64, stages=8),
    "skinny": Skinny(bm=16, bk=256, stages=5),
    "skinny_64": Skinny(bm=64, stages=6),
    "narrow": Narrow(),
    "split_2": Split(splits=2),
    "split_4": Split(splits=4),
}


@kernel(configs=CONFIGS)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    """The family: the claim is stated here, and no schedule states another."""
    multiply(Contraction(A, B, C), cfg)


def multiply(problem: Contraction, cfg: Config) -> None:
    """All of a product by the schedule of a configuration, with its claim."""
    match cfg:
        case Cdna3():
            cdna3_double_buffer(problem, cfg)
        case Cdna3PingPong():
            cdna3_pingpong(problem, cfg)
        case Hopper(pingpong=True):
            hopper_pingpong(problem, cfg, identity)
        case Hopper(cluster=(1,)):
            hopper_cooperative(problem, cfg, identity)
        case Hopper():
            hopper_clustered(problem, cfg, identity)
        case Skinny():
            hopper_skinny(problem, cfg)
        case Narrow():
            hopper_narrow(problem, cfg)
        case Split():
            hopper_split(problem, cfg)
        case _:
            assert_never(cfg)
    problem.finish()


def select(m: int, n: int, k: int) -> str:
    """The configuration of sm_90a that is expected to take least for C = A @ B^T of these extents, without a search.

    The copy engine moves rows that begin at multiples of 16 bytes: others go element by element. C that has no such
    rows leaves the schedules for few rows of A, which store elements.
    """
    if k % 8:
        return "narrow"
    if n % 8:
        return cheapest({name: each for name, each in CONFIGS.items() if isinstance(each, Skinny)}, m, n, k)
    return cheapest(CONFIGS, m, n, k)
