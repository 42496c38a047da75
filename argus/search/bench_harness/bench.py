"""Interfaces of the bench harness: the device (`Bench`) and the candidate under test."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.search.bench_harness.subject import Subject

Bytes = npt.NDArray[np.uint8]
Call = Callable[[], object]
ELEMENT = 2
"""Bytes of an element of bfloat16."""


@frozen
class Operand:
    """A row-major tensor on the device. element: bytes per element."""

    address: int
    shape: tuple[int, ...]
    element: int = ELEMENT

    @property
    def bytes(self) -> int:
        return self.element * prod(self.shape)


Candidate = Callable[..., Call]
"""Binds operands, in the order of the subject's tensors, to a call that computes the outputs.

The contents are written between binding and call."""


class Bench(Protocol):
    """A device and its clocks. Times are in microseconds. All methods raise ArgusError if the device fails."""

    def allocate(self, size: int) -> int:
        """Allocate memory; the address is a multiple of 256."""
        ...

    def free(self, address: int) -> None: ...
    def write(self, address: int, contents: Bytes) -> None: ...
    def fill(self, address: int, size: int, byte: int) -> None: ...
    def read(self, address: int, size: int) -> Bytes: ...

    def synchronise(self, *, everything: bool) -> None:
        """Synchronise with the stream of calls; everything: with all streams."""
        ...

    def try_acquire(self) -> bool:
        """Try to acquire exclusive use of the device, waiting briefly. Returns whether it succeeded."""
        ...

    def release(self) -> None:
        """Release the device."""
        ...

    def keep_busy(self, calls: int) -> None:
        """Keep the stream busy until `calls` launches are queued behind, so that launch overhead is hidden."""
        ...

    def record_event(self) -> object:
        """Record an event on the stream of calls."""
        ...

    def elapsed(self, first: object, last: object) -> float:
        """Time between two completed events."""
        ...

    def host_time(self) -> float:
        """Host clock."""
        ...

    def instruments(self) -> tuple[object, ...]:
        """The current function objects that this bench measures with, to detect tampering."""
        ...

    def least(self, subject: Subject) -> float:
        """Lower bound of the subject's time on this device."""
        ...
