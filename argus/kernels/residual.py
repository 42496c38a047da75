"""GEMM with a residual, C = A @ B^T + R: on H200, a tile of R is loaded by TMA before A and B."""

from __future__ import annotations

from itertools import count

from argus.kernels.epilogues import CDNA3, Config, fetch_of
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import Deferred, TileCoord, of_each, with_residual
from argus.kernels.schedules.hopper import Fetch, Hopper, hopper_cooperative
from argus.language import (
    Fragment,
    Int,
    Ring,
    Slot,
    Tensor,
    assert_equals,
    bf16,
    copy,
    elements,
    f32,
    kernel,
    ldmatrix,
    load,
    shared,
    tag,
    tma,
)

_WIDTH = 64
CONFIGS: dict[str, Config] = {
    "columns_256": Hopper(stages=3, turns=1),
    "columns_256_bands": Hopper(stages=3, turns=1, group=8),
    "columns_128": Hopper(bn=128),
    "columns_128_bands": Hopper(bn=128, group=8),
    **CDNA3,
}


@kernel(configs=CONFIGS)
def gemm_residual(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], R: Tensor["M N", bf16], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = A @ B^T + R."""
    tag(R, lambda m, n: dict(m=m, n=n))
    problem = Contraction(A, B, C)
    if isinstance(cfg, Cdna3Interleaved):
        cdna3_interleaved(problem, cfg, with_residual(R, fetch_of(cfg)))
    else:
        _by_tma(problem, R, cfg)
    problem.finish()
    assert_equals(C, lambda m, n: problem.element(m, n) + elements(R)(m, n))


def _by_tma(problem: Contraction, R: Tensor, cfg: Hopper) -> None:
    """Add the tile of R in the epilogue."""
    parts = cfg.bn // _WIDTH
    # With two stages for R, the producer does not wait for the epilogue.
    held = Ring(1 if cfg.bn > _WIDTH * 2 else 2, r=shared(bf16, (parts, cfg.bm, _WIDTH), swizzle=128))
    slots, seen = list[Slot](), count()

    def fetch(m: Int, n: Int) -> None:
        with held.fill() as slot:
            for j in range(parts):
                copy(R.tile((cfg.bm, _WIDTH), (m, n * parts + j)), slot.r[j], via=tma, edge=0)

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        def add() -> Fragment:
            j = next(seen)
            part = load(slots[0].r[j].tile((64, _WIDTH), (at[0] % 2, 0)), acc.layout, via=ldmatrix.x4)
            if j == parts - 1:
                held.release()
            return acc + part.to(f32)

        return add

    hopper_cooperative(problem, cfg, of_each(epilogue), Fetch(fetch, lambda: slots.append(held.wait()), held.finish))
