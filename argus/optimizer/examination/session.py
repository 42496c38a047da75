"""Operands on a device between zones that nobody may touch, set before each call and looked at after it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.optimizer.examination.bench import ELEMENT, Bench, Bytes, Operand
from argus.optimizer.examination.inputs import Case, Draws, Shape
from argus.optimizer.examination.outputs import complaint, exact, rows
from argus.optimizer.examination.verdict import Caught, Check, Plan

_POISON = 0xFF
"""Each byte of an output before a call: not a number, in any float type."""
_ZONE = 4096
"""Bytes before and after each operand."""


@frozen
class Placed:
    """Operands of one call."""

    a: Operand
    b: Operand
    c: Operand

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        return self.a, self.b, self.c


@define
class Session:
    """What one examination holds of the device."""

    bench: Bench
    plan: Plan
    draws: Draws
    zone: Bytes
    _taken: list[int] = field(factory=list[int])
    _arenas: list[int] = field(factory=list[int])

    def place(self, shape: Shape) -> Placed:
        """Room for operands; without the check of addresses always the same."""
        m, n, k = shape
        extents = ((m, k), (n, k), (m, n))
        if self.plan.has("addresses"):
            found = [self._allocated(ELEMENT * r * c) for r, c in extents]
        else:
            found = self._arenas = self._arenas or [self._allocated(ELEMENT * r * c) for r, c in extents]
        return Placed(*(Operand(address, each) for address, each in zip(found, extents, strict=True)))

    def _allocated(self, size: int) -> int:
        size = size if self.plan.has("addresses") else max(size, 1 << 20)
        begin = self.bench.allocate(size + 2 * _ZONE + 256)
        self._taken.append(begin)
        return begin + _ZONE

    def pose(self, placed: Placed, case: Case) -> None:
        """A call's operands as it shall find them."""
        self.bench.write(placed.a.address, _bytes(case.left))
        self.bench.write(placed.b.address, _bytes(case.right))
        self.poison(placed)
        if not self.plan.has("reference"):
            self._lay_out_reference(case)

    def poison(self, placed: Placed) -> None:
        if self.plan.has("poison"):
            self.bench.fill(placed.c.address, placed.c.bytes, _POISON)
        if self.plan.has("guards"):
            for each in placed.operands:
                self.bench.write(each.address - _ZONE, self.zone)
                self.bench.write(each.address + each.bytes, self.zone)

    def _lay_out_reference(self, case: Case) -> None:
        """What an examination does that compares on the device."""
        product, _ = exact(case, np.arange(case.shape[0], dtype=np.int64))
        expected = _bytes(product.astype(bfloat16))
        self._taken.append(self.bench.allocate(expected.size))
        self.bench.write(self._taken[-1], expected)

    def look(self, placed: Placed, case: Case, check: Check) -> Caught | None:
        """What is wrong after a call. check: what a wrong output is put down to."""
        if self.plan.has("guards") and (touched := self._touched(placed)):
            return Caught("guards", f"bytes {touched} were written, which are none of the output")
        if self.plan.has("intact"):
            for name, each, held in (("A", placed.a, case.left), ("B", placed.b, case.right)):
                if not np.array_equal(self.bench.read(each.address, each.bytes), _bytes(held)):
                    return Caught("intact", f"{name} is not what it was before the call")
        return self.judge(placed, case, check, self.plan.most_products)

    def judge(self, placed: Placed, case: Case, check: Check, most_products: int) -> Caught | None:
        """What is wrong with an output alone."""
        extents = "x".join(map(str, case.shape))
        found = self.bench.read(placed.c.address, placed.c.bytes).view(bfloat16).reshape(placed.c.shape)
        if self.plan.has("poison") and (left := unwritten(found)):
            return Caught(check, f"{left:,} of {found.size:,} elements of C were not written, at {extents}")
        chosen = rows(case, self.draws.generator(), most_products)
        told = complaint(case, found, chosen, numbers=self.plan.has("numbers"), precision=self.plan.has("precision"))
        if told is None:
            return None
        return Caught("precision" if told.precise else check, f"{told.text}, at {extents}")

    def _touched(self, placed: Placed) -> str:
        for name, each in zip("ABC", placed.operands, strict=True):
            if not np.array_equal(self.bench.read(each.address - _ZONE, _ZONE), self.zone):
                return f"before {name}"
            if not np.array_equal(self.bench.read(each.address + each.bytes, _ZONE), self.zone):
                return f"after {name}"
        return ""

    def close(self) -> None:
        for address in self._taken:
            with suppress(ArgusError):  # after a fault the process is given up, and its memory with it
                self.bench.free(address)


def unwritten(found: npt.NDArray[Any]) -> int:
    """Elements that are still poison."""
    return int(np.count_nonzero(found.view(np.uint16) == 0xFFFF))


@contextmanager
def session(bench: Bench, plan: Plan) -> Generator[Session]:
    """Memory that is given back at the end."""
    draws = Draws(plan.seed, constant=not plan.has("secret"))
    zone = draws.generator().integers(0, 256, _ZONE, np.uint8)
    opened = Session(bench, plan, draws, zone)
    try:
        yield opened
    finally:
        opened.close()


def _bytes(array: npt.NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
