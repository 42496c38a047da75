"""What an examination needs of a device, and what a candidate is to it."""

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
    """A row-major tensor on the device. element: bytes of one."""

    address: int
    shape: tuple[int, ...]
    element: int = ELEMENT

    @property
    def bytes(self) -> int:
        return self.element * prod(self.shape)


Candidate = Callable[..., Call]
"""Binds operands in the order of the subject's tensors, of which contents come later, to a call that sets outputs."""


class Bench(Protocol):
    """A device and its clocks. Times are in microseconds. All methods raise ArgusError where the device fails."""

    def allocate(self, size: int) -> int:
        """The address of so many bytes, a multiple of 256."""
        ...

    def free(self, address: int) -> None: ...
    def write(self, address: int, contents: Bytes) -> None: ...
    def fill(self, address: int, size: int, byte: int) -> None: ...
    def read(self, address: int, size: int) -> Bytes: ...

    def settle(self, *, everything: bool) -> None:
        """Wait until the stream of calls is done; everything: and all other streams."""
        ...

    def take(self) -> bool:
        """Whether nobody else uses the device now, until `give`; where somebody does, it is waited for a moment."""
        ...

    def give(self) -> None: ...

    def hold(self, calls: int) -> None:
        """Keep the stream of calls busy while so many launches gather behind."""
        ...

    def mark(self) -> object:
        """An event on the stream of calls."""
        ...

    def between(self, first: object, last: object) -> float:
        """The time from one mark to another, both of which the device has passed."""
        ...

    def host(self) -> float:
        """The host's clock."""
        ...

    def instruments(self) -> tuple[object, ...]:
        """All functions that this bench measures with, as they are found now."""
        ...

    def least(self, subject: Subject) -> float:
        """The least time that the work can take on this device."""
        ...
