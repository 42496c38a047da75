"""A candidate on the simulated device: base class of all cheats, and itself an honest product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define
from ml_dtypes import bfloat16

from argus.search.bench_harness.bench import Call, Operand
from argus.testing.simulated import Simulated

Halves = npt.NDArray[Any]


SHAPE = (48, 48, 2304)
"""Sizes of the problem."""


DEEP = 2048
"""Least K of products that count as deep."""


HONEST = 2.0
"""Time of an honest candidate, relative to the device's lower bound."""


LAZY = 1.2
"""Time of a cheat, relative to the device's lower bound."""


Epilogue = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def same(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return values


@define
class Candidate:
    """An honest product. pace: time over the lower bound. after: applied to sums before rounding."""

    device: Simulated
    pace: float = HONEST
    after: Epilogue = same

    def product(self, a: Halves, b: Halves) -> Halves:
        return self.after(a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)

    def __call__(self, a: Operand, b: Operand, c: Operand) -> Call:
        return lambda: self.call(a, b, c)

    def call(self, a: Operand, b: Operand, c: Operand) -> None:
        self.launch(a, b, lambda: self.work(a, b, c))

    def launch(self, a: Operand, b: Operand, work: Callable[[], None], share: float = 1.0) -> None:
        self.device.launch(share * self.pace * self.device.least_of(a, b), work)

    def work(self, a: Operand, b: Operand, c: Operand) -> None:
        self.device.matrix(c)[:] = self.product(self.device.matrix(a), self.device.matrix(b))

    def all_of(self, calls: list[tuple[Operand, Operand, Operand]]) -> None:
        for each in calls:
            self.work(*each)
