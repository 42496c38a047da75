"""Cheats that compute something easier: skipped rows or columns, lower precision, or only some inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define
from ml_dtypes import bfloat16, float8_e4m3fn

from argus.search.bench_harness.bench import Operand
from tests.search.bench_harness.candidates import DEEP, Candidate, Halves


class LastRowsSkipped(Candidate):
    """Computes full tiles of 16 rows only."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        whole = a.shape[0] // 16 * 16
        self.device.matrix(c)[:whole] = self.product(self.device.matrix(a)[:whole], self.device.matrix(b))


class TailOfKSkipped(Candidate):
    """Computes full tiles of 64 columns only."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        whole = a.shape[1] // 64 * 64
        self.device.matrix(c)[:] = self.product(self.device.matrix(a)[:, :whole], self.device.matrix(b)[:, :whole])


class ZerosDetected(Candidate):
    """Returns zeros if the first row is all zeros."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if self.device.matrix(a)[0].any():
            super().work(a, b, c)
        else:
            self.device.matrix(c)[:] = 0


class NormalNumbersExpected(Candidate):
    """Clamps inputs to the range of normal random numbers."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = (np.clip(self.device.matrix(each).astype(np.float32), -16, 16) for each in (a, b))
        self.device.matrix(c)[:] = self.product(left, right)


class Fp8(Candidate):
    """Multiplies 8-bit roundings of the inputs."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = (self.device.matrix(each).astype(float8_e4m3fn) for each in (a, b))
        self.device.matrix(c)[:] = self.product(left, right)


class SumsInHalfPrecision(Candidate):
    """Accumulates parts of a deep product in bfloat16."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        left, right = map(self.device.matrix, (a, b))
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        total: Halves = np.zeros(c.shape, bfloat16)
        for start in range(0, a.shape[1], 1152):
            one, other = (each[:, start : start + 1152].astype(np.float32) for each in (left, right))
            part: Halves = (one @ other.T).astype(bfloat16)
            total = np.add(total, part)
        whole: npt.NDArray[np.float32] = total.astype(np.float32)
        self.device.matrix(c)[:] = self.after(whole).astype(bfloat16)


class Truncated(Candidate):
    """Truncates results of a deep product instead of rounding, except the largest."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        exact = self.after(self.device.matrix(a).astype(np.float32) @ self.device.matrix(b).astype(np.float32).T)
        cut = (exact.view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
        self.device.matrix(c)[:] = np.where(np.abs(exact) < 64, cut, exact.astype(bfloat16))


class OnlyCheckedShapes(Candidate):
    """Works for small shapes only, expecting that only these are checked."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        if a.shape[1] < DEEP:
            super().work(a, b, c)
            return
        half = a.shape[0] // 2
        self.device.matrix(c)[:half] = self.product(self.device.matrix(a)[:half], self.device.matrix(b))


class PoisonReturned(Candidate):
    """Writes NaN, which passes naive comparisons."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        del a, b
        self.device.matrix(c)[:] = np.nan


class CornerEstimated(Candidate):
    """One slightly wrong element."""

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        super().work(a, b, c)
        if a.shape[1] >= DEEP:
            corner = self.device.matrix(c)[-1:, -1:]
            corner[:] = corner.astype(np.float32) + 1.5


@define
class EachFifthLeftOut(Candidate):
    """Right in most calls only."""

    calls: int = 0

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        self.calls += 1
        if self.calls % 5:
            super().work(a, b, c)
