"""Measures how the cost of a proof grows: `python benchmarks/growth.py [--quick] [--solver z3]`.

One parameter of a kernel varies at a time: sizes (assumed to be one number), stages of a ring, threads, tile, unroll
factor of the mainloop. Each row is a full proof in a warm process without an answer cache, the minimum of five, with
the number of obligations, the number of solver queries, and the ratio to the first row. The reference unit of the
ratio is threads times elements per thread, or pairs of conflicting accesses.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from attrs import evolve, frozen

import argus
from argus.core.ir import Kernel
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import identity, of_each
from argus.kernels.schedules.hopper import Hopper, hopper_cooperative, hopper_pingpong
from argus.language import (
    Int,
    Swizzle,
    Template,
    Tensor,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    ds_read_b128,
    eq,
    f32,
    gfx942,
    global_load,
    kernel,
    lds,
    loop,
    mfma,
    mfma_f32_32x32x8_bf16,
    mma,
    registers,
    shared,
    spread,
    sync,
    vmem,
)


@frozen
class Plain:
    """gfx942: square tiles of side `tile` by `waves`, 32 of K per body, `bodies` of them unrolled; size: of M, N, K."""

    tile: int = 128
    waves: tuple[int, int] = (2, 2)
    bodies: int = 1
    size: int = 0
    target = gfx942

    @property
    def threads(self) -> int:
        return 64 * self.waves[0] * self.waves[1]


@kernel
def plain(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Plain) -> None:
    """One LDS buffer per matrix, two barriers per body: a minimal GEMM with shared memory."""
    problem = Contraction(A, B, C)
    tile, depth = cfg.tile, A.shape[1]
    assume(depth >= 1, depth % 8 == 0, A.shape[0] * depth < 1 << 31, B.shape[0] * depth < 1 << 31)
    if cfg.size:
        assume(eq(depth, cfg.size), eq(A.shape[0], cfg.size), eq(B.shape[0], cfg.size))
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=cfg.waves, tile=(tile, tile), k=32, k_run=8)
    by = spread((tile, 32), threads=cfg.threads, vector=8 if 4 * tile >= cfg.threads else 4)
    swizzle = Swizzle(2, 3, 3)
    lds_a, lds_b = shared(bf16, (tile, 32), swizzle=swizzle), shared(bf16, (tile, 32), swizzle=swizzle)
    m, n = block_id(problem.tiles(tile, tile))
    next_a, next_b = registers(bf16, by), registers(bf16, by)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)

    def body(k: Int) -> None:
        copy(A.tile((tile, 32), (m, k)), next_a, via=global_load, edge=0)
        copy(B.tile((tile, 32), (n, k)), next_b, via=global_load, edge=0)
        vmem.wait(0)
        copy(next_a, lds_a)
        copy(next_b, lds_b)
        lds.wait(0)
        sync()
        copy(lds_a, a, via=ds_read_b128)
        copy(lds_b, b, via=ds_read_b128)
        lds.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()

    for k in loop(ceil_div(depth, 32 * cfg.bodies)):
        for j in range(cfg.bodies):
            body(cfg.bodies * k + j)
    problem.complete(acc)
    copy(acc.to(bf16), C.tile((tile, tile), (m, n)), edge=0)
    problem.finish()


@kernel
def staged(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Hopper) -> None:
    """The shipped schedules with other parameters; uses are bounded for numbers of stages that are no power of two."""
    problem = Contraction(A, B, C)
    rows, columns = problem.tiles(cfg.bm, cfg.bn)
    assume(rows * columns * (ceil_div(A.shape[1], cfg.bk) + 1) < 1 << 29)
    (hopper_pingpong if cfg.pingpong else hopper_cooperative)(problem, cfg, of_each(identity))
    problem.finish()


@frozen
class Row:
    """One proof: the varied parameter, its value, the kernel's family, and the reference unit of the cost."""

    what: str
    value: int
    family: Template
    unit: int

    @property
    def made(self) -> Kernel:
        return self.family.trace()


def with_config(family: Template, cfg: object) -> Template:
    return evolve(family, configs={"varied": cfg})


def rows() -> Iterator[Row]:
    for size in (256, 1024, 4096, 16384, 32768):
        yield Row("problem size", size, with_config(plain, Plain(size=size)), 1)
    for stages in range(2, 9):
        ring = Hopper(bm=64, bn=128, stages=stages, pingpong=True)
        yield Row("stages", stages, with_config(staged, ring), stages)
    for waves in ((1, 2), (2, 2), (2, 4), (4, 4)):
        cfg = Plain(waves=waves)
        yield Row("threads", cfg.threads, with_config(plain, cfg), 1)
    for tile in (64, 128, 256):
        yield Row("tile squared", tile, with_config(plain, Plain(tile=tile)), tile * tile)
    for bodies in (1, 2, 4, 6, 8, 10):
        yield Row("unrolled bodies", bodies, with_config(plain, Plain(bodies=bodies)), bodies * bodies)


def timed(row: Row, solver: str, times: int) -> tuple[float, argus.Report]:
    runs: list[tuple[float, argus.Report]] = []
    made = row.made
    for _ in range(times):
        start = time.perf_counter()
        report = argus.verify(made, solver=solver)
        runs.append((time.perf_counter() - start, report))
    return min(took for took, _ in runs), runs[-1][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each instead of five")
    parser.add_argument("--solver", default="z3")
    chosen = parser.parse_args()
    print(f"{'varied':16} {'value':>7} {'seconds':>8} {'ratio':>6} {'of unit':>8} {'asked':>7} {'SMT':>5}   verdict")
    first: dict[str, tuple[float, int]] = {}
    wrong = 0
    for row in rows():
        took, report = timed(row, chosen.solver, 1 if chosen.quick else 5)
        start, unit = first.setdefault(row.what, (took, row.unit))
        name = type(report.verdict).__name__
        wrong += name != "Proved"
        grown = f"{took / start:6.2f} {row.unit / unit:8.2f}"
        cost = f"{report.cost.asked:>7} {report.cost.smt:>5}"
        print(f"{row.what:16} {row.value:>7} {took:8.3f} {grown} {cost}   {name}", flush=True)
    if wrong:
        sys.exit(f"{wrong} kernels were not proved")


if __name__ == "__main__":
    main()
