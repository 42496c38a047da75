"""What a matrix unit that truncates loses of f32 products by parts, in a model: `python benchmarks/f32_model.py`.

Each instruction adds 16 products to its accumulator: all are cut to two bits below the last of the largest's 24, added
exactly, and cut to 24 bits [Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores", of earlier units]. On an
H200, `benchmarks/f32_h200.py errors` has measured the same errors within a tenth. Prints the norm of the error over
that of the product, for sums of 32 of K that are added to f32 sums (as in `argus.kernels.gemm_f32`), for the same whose
additions are compensated, for one sum that stays in the accumulator, and for a chain of FMAs in f32.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus.core.rounding import round_bf16
from argus.kernels.schedules.parts import PAIRS

Wide = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
ROWS, SLICE, AT_ONCE, BITS, BELOW = 24, 32, 16, 24, 2
DEPTHS = (64, 512, 4096)


def parts_of(x: Single) -> tuple[Wide, ...]:
    high = round_bf16(x)
    middle = round_bf16(x - high)
    return tuple(each.astype(np.float64) for each in (high, middle, x - high - middle))


def exponent(x: Wide) -> npt.NDArray[np.int32]:
    """That of the power of two above x, far below all others for 0."""
    return np.where(x == 0, -1000, np.frexp(x)[1])


def added(total: Wide, a: Wide, b: Wide) -> Wide:
    """What an instruction makes of an accumulator and of 16 products for each element."""
    terms = a[:, None, :] * b[None, :, :]
    highest = (exponent(a)[:, None, :] + exponent(b)[None, :, :]).max(-1) - 1
    last = np.maximum(highest, exponent(total)) - BITS - BELOW
    cut = np.trunc(np.ldexp(total, -last)) + np.trunc(np.ldexp(terms, -last[..., None])).sum(-1)
    mantissa, power = np.frexp(np.ldexp(cut, last))
    return np.ldexp(np.trunc(np.ldexp(mantissa, BITS)), power - BITS)


def by_parts(a: Single, b: Single, how: str) -> Wide:
    """how: "apart", "compensated", or "one sum"."""
    p, q = parts_of(a), parts_of(b)
    sums, unit = np.zeros((len(a), len(b)), np.float32), np.zeros((len(a), len(b)))
    for k in range(0, a.shape[1], SLICE):
        unit = np.zeros_like(unit) if how == "apart" else unit
        for i, j in PAIRS[6]:
            for at in range(k, k + SLICE, AT_ONCE):
                unit = added(unit, p[i][:, at : at + AT_ONCE], q[j][:, at : at + AT_ONCE])
        if how != "one sum":
            before, term = sums, unit.astype(np.float32)
            sums = before + term
            unit = (term - (sums - before)).astype(np.float64)
    return unit if how == "one sum" else sums.astype(np.float64)


def by_fmas(a: Single, b: Single) -> Wide:
    sums = np.zeros((ROWS, ROWS), np.float32)
    for k in range(a.shape[1]):
        sums = (sums + np.outer(a[:, k].astype(np.float64), b[:, k].astype(np.float64))).astype(np.float32)
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
                "sums of 32 of K": by_parts(a, b, "apart"),
                "compensated": by_parts(a, b, "compensated"),
                "one sum": by_parts(a, b, "one sum"),
                "FMAs": by_fmas(a, b),
            }
            said = (
                f"{name} {np.linalg.norm(made - exact) / np.linalg.norm(exact):.1e}" for name, made in found.items()
            )
            print(f"{kind:9} {depth:6}  {', '.join(said)}")


if __name__ == "__main__":
    main()
