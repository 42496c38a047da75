"""Manages operands on the device between guard zones: fills them before each call and checks them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.search.bench_harness.bench import Bench, Bytes, Operand
from argus.search.bench_harness.inputs import UNSIGNED, Case, RandomInputs, Sizes
from argus.search.bench_harness.subject import CheckScope, Subject
from argus.search.bench_harness.verdict import Caught, Check, Plan

T = TypeVar("T")
Array = npt.NDArray[Any]
_POISON = 0xFF
"""Byte that fills outputs before a call: NaN in every float type."""
_ZONE = 4096
"""Bytes of the guard zones before and after each operand."""


@frozen
class Placed:
    """Operands of one call, in the order of the subject's tensors."""

    operands: tuple[Operand, ...]

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.operands)


@frozen
class After:
    """State after a call. contents: of tensors by name. touched: which guard zone has changed, empty if none."""

    contents: Mapping[str, Bytes]
    touched: str = ""


@define
class Session:
    """Device memory and random inputs of one test run."""

    bench: Bench
    plan: Plan
    subject: Subject
    draws: RandomInputs
    zone: Bytes
    _taken: list[int] = field(factory=list[int])
    _arenas: list[int] = field(factory=list[int])

    def place(self, sizes: Sizes) -> Placed:
        """Allocate operands; always at the same addresses if the check `addresses` is off."""
        tensors = self.subject.tensors
        operands = [
            Operand(0, shape, tensor.dtype.itemsize)
            for tensor, shape in zip(tensors, self.subject.shapes(sizes), strict=True)
        ]
        if self.plan.has("addresses"):
            found = [self._allocated(each.bytes) for each in operands]
        else:
            found = self._arenas = self._arenas or [self._allocated(each.bytes) for each in operands]
        return Placed(tuple(evolve(each, address=place) for each, place in zip(operands, found, strict=True)))

    def _allocated(self, size: int) -> int:
        size = size if self.plan.has("addresses") else max(size, 1 << 20)
        begin = self.bench.allocate(size + 2 * _ZONE + 256)
        self._taken.append(begin)
        return begin + _ZONE

    def exclusively(self, step: Callable[[], T]) -> Generator[str, None, T]:
        """Run a step with exclusive use of the device; yields a note whenever it has to wait."""
        while not self.bench.try_acquire():
            yield "the GPU, which another process uses"
        try:
            return step()
        finally:
            self.bench.release()

    def prepare(self, placed: Placed, case: Case) -> None:
        """Write a call's inputs, and poison outputs and guard zones."""
        for tensor, operand in zip(self.subject.tensors, placed.operands, strict=True):
            if tensor.read:
                self.bench.write(operand.address, _bytes(case.arrays[tensor.name]))
        self.poison(placed)
        if not self.plan.has("reference"):
            self._lay_out_reference(case)

    def poison(self, placed: Placed) -> None:
        """Fill outputs with NaN and restore guard zones."""
        for tensor, operand in zip(self.subject.tensors, placed.operands, strict=True):
            if self.plan.has("poison") and not tensor.read:
                self.bench.fill(operand.address, operand.bytes, _POISON)
            if self.plan.has("guards"):
                self.bench.write(operand.address - _ZONE, self.zone)
                self.bench.write(operand.address + operand.bytes, self.zone)

    def _lay_out_reference(self, case: Case) -> None:
        """Put the expected outputs on the device, as a harness that compares there would do."""
        for array in self.subject.expected(case).values():
            expected = _bytes(array)
            self._taken.append(self.bench.allocate(expected.size))
            self.bench.write(self._taken[-1], expected)

    def after(self, placed: Placed, *, outputs: bool) -> After:
        """Read back the state; outputs: of the outputs only."""
        contents = {
            tensor.name: self.bench.read(operand.address, operand.bytes)
            for tensor, operand in zip(self.subject.tensors, placed.operands, strict=True)
            if tensor.written or (self.plan.has("intact") and not outputs)
        }
        return After(contents, self._touched(placed) if self.plan.has("guards") and not outputs else "")

    def check_call(self, after: After, placed: Placed, case: Case, check: Check) -> Caught | None:
        """Check guard zones, inputs and outputs. check: reported for a wrong output."""
        if after.touched:
            return Caught("guards", f"bytes {after.touched} were written, outside the output")
        for tensor in self.subject.tensors:
            held = None if tensor.written else after.contents.get(tensor.name)
            if held is not None and not np.array_equal(held, _bytes(case.arrays[tensor.name])):
                return Caught("intact", f"{tensor.name} was changed by the call")
        return self.check_outputs(after, placed, case, check, self.plan.most_products)

    def check_outputs(
        self, after: After, placed: Placed, case: Case, check: Check, most_products: int
    ) -> Caught | None:
        """Check the outputs only."""
        found: dict[str, Array] = {}
        for tensor, operand in zip(self.subject.tensors, placed.operands, strict=True):
            if not tensor.written:
                continue
            made = after.contents[tensor.name].view(tensor.dtype).reshape(operand.shape)
            if self.plan.has("poison") and not tensor.read and (left := unwritten(made)):
                why = f"{left:,} of {made.size:,} elements of {tensor.name} were not written, at {case.at}"
                return Caught(check, why)
            found[tensor.name] = made
        looked = CheckScope(self.plan.has("numbers"), self.plan.has("precision"), most_products)
        mismatch = self.subject.compare(case, found, self.draws.generator(), looked)
        if mismatch is None:
            return None
        return Caught("precision" if mismatch.precise else check, f"{mismatch.text}, at {case.at}")

    def _touched(self, placed: Placed) -> str:
        for tensor, operand in zip(self.subject.tensors, placed.operands, strict=True):
            if not np.array_equal(self.bench.read(operand.address - _ZONE, _ZONE), self.zone):
                return f"before {tensor.name}"
            if not np.array_equal(self.bench.read(operand.address + operand.bytes, _ZONE), self.zone):
                return f"after {tensor.name}"
        return ""

    def close(self) -> None:
        """Free all memory."""
        for address in self._taken:
            with suppress(ArgusError):  # after a fault the process ends, which frees its memory
                self.bench.free(address)


def unwritten(found: Array) -> int:
    """Number of elements that still have the poison value."""
    element = UNSIGNED[found.dtype.itemsize]
    poison = element(int.from_bytes(bytes([_POISON]) * found.dtype.itemsize))
    return int(np.count_nonzero(np.ascontiguousarray(found).view(element) == poison))


@contextmanager
def session(bench: Bench, plan: Plan, subject: Subject) -> Generator[Session]:
    """Open a session; frees its memory at the end."""
    draws = RandomInputs(plan.seed, constant=not plan.has("secret"))
    zone = draws.generator().integers(0, 256, _ZONE, np.uint8)
    opened = Session(bench, plan, subject, draws, zone)
    try:
        yield opened
    finally:
        opened.close()


def _bytes(array: Array) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
