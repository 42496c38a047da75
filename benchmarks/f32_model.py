"""What a matrix unit that truncates loses of f32 products by parts, in a model: `python benchmarks/f32_model.py`.

Each instruction adds 16 products to its accumulator exactly, and truncates the sum to 24 bits. Prints the norm of the
error over that of the product, for sums of 32 of K that are added to f32 sums (as in `argus.kernels.gemm_f32`), for one
sum that stays in the accumulator, and for a chain of FMAs in f32. The unit of a GPU may keep more bits, or fewer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus.core.rounding import round_bf16
from argus.kernels.schedules.parts import PAIRS

Wide = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
ROWS, SLICE, AT_ONCE, BITS = 16, 32, 16, 24
DEPTHS = (64, 512, 4096, 32768)


def parts_of(x: Single) -> tuple[Wide, ...]:
    high = round_bf16(x)
    middle = round_bf16(x - high)
    return tuple(each.astype(np.float64) for each in (high, middle, x - high - middle))


def truncated(x: Wide) -> Wide:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(mantissa, BITS)), exponent - BITS)


def by_parts(a: Single, b: Single, *, apart: bool) -> Wide:
    p, q = parts_of(a), parts_of(b)
    sums, unit = np.zeros((ROWS, ROWS), np.float32), np.zeros((ROWS, ROWS))
    for k in range(0, a.shape[1], SLICE):
        unit = np.zeros_like(unit) if apart else unit
        for i, j in PAIRS[6]:
            for at in range(k, k + SLICE, AT_ONCE):
                unit = truncated(unit + p[i][:, at : at + AT_ONCE] @ q[j][:, at : at + AT_ONCE].T)
        sums = sums + unit.astype(np.float32)
    return sums.astype(np.float64) if apart else unit


def by_fmas(a: Single, b: Single) -> Wide:
    sums = np.zeros((ROWS, ROWS), np.float32)
    for k in range(a.shape[1]):
        added = sums.astype(np.float64) + np.outer(a[:, k].astype(np.float64), b[:, k].astype(np.float64))
        sums = added.astype(np.float32)
    return sums.astype(np.float64)


def main() -> None:
    for kind in ("normal", "one-sided"):
        for depth in DEPTHS:
            random = np.random.default_rng(1)
            a, b = (random.standard_normal((ROWS, depth)).astype(np.float32) for _ in range(2))
            if kind == "one-sided":
                a, b = np.abs(a), np.abs(b)
            exact = a.astype(np.float64) @ b.astype(np.float64).T
            found = {
                "sums of 32 of K": by_parts(a, b, apart=True),
                "one sum": by_parts(a, b, apart=False),
                "FMAs": by_fmas(a, b),
            }
            said = (
                f"{name} {np.linalg.norm(made - exact) / np.linalg.norm(exact):.1e}" for name, made in found.items()
            )
            print(f"{kind:9} {depth:6}  {', '.join(said)}")


if __name__ == "__main__":
    main()
