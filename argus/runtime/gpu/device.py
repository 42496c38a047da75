"""A GPU of this machine: memory, copies, and timed launches."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.gpu.driver import GpuDriver

Bytes = npt.NDArray[np.uint8]
ARCHITECTURES = {"sm_90a": "sm_90", "gfx942": "gfx942"}
"""The only instruction set that runs the code of a target."""
_KINDS = {"sm_90a": "an H100 or H200", "gfx942": "an MI300X, MI300A or MI325X"}


def architecture(about: Any) -> str:  # noqa: ANN401 reason: torch's properties of a device
    """The instruction set of a device of torch's, as `GpuDriver.architecture_of` names it.

    Where torch is built for AMD GPUs, `gcnArchName` begins with it; elsewhere it is absent or the GPU's name.
    """
    amd = str(getattr(about, "gcnArchName", "")).partition(":")[0]
    return amd if amd.startswith("gfx") else f"sm_{about.major}{about.minor}"


@frozen
class Memory:
    """Device memory as a row-major tensor with elements of `size` bytes."""

    driver: GpuDriver
    pointer: int
    shape: tuple[int, ...]
    size: int

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        """In elements."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.size

    def write(self, contents: Bytes) -> None:
        """Copy from the host. contents: exactly `bytes` bytes, in row-major order."""
        if self.bytes:
            self.driver.copy_in(self.pointer, contents.ctypes.data, self.bytes)

    def fill(self, byte: int) -> None:
        if self.bytes:
            self.driver.fill(self.pointer, byte, self.bytes)

    def read(self) -> Bytes:
        """Copy to the host."""
        contents = np.empty(self.bytes, np.uint8)
        if self.bytes:
            self.driver.copy_out(contents.ctypes.data, self.pointer, self.bytes)
        return contents


@frozen
class Device:
    """A GPU. name: from the driver. architecture: its instruction set, such as `sm_90`, `gfx942`. bus: PCI bus id."""

    driver: GpuDriver
    name: str
    architecture: str
    bus: str

    def check_runs(self, target: str) -> None:
        """Raises ArgusError (E407) if the code of this target does not run here."""
        if ARCHITECTURES.get(target) != self.architecture:
            message = f"this GPU is {self.name} ({self.architecture}), the kernel is for {target}"
            repair = f"run it on {_KINDS.get(target, 'a GPU of that kind')}, or in the interpreter"
            raise ArgusError(Diagnostic("E407", "error", message, help=repair))

    def allocate(self, shape: tuple[int, ...], size: int) -> Memory:
        """Uninitialised memory, to be released by `free`. Raises ArgusError (E408) if there is not enough."""
        return Memory(self.driver, self.driver.allocate(max(1, prod(shape) * size)), shape, size)

    def free(self, memory: Memory) -> None:
        """Release memory from `allocate`; the GPU must no longer be using it."""
        self.driver.free(memory.pointer)

    def timed(self, launch: Callable[[], None], repeats: int) -> list[float]:
        """Milliseconds of each of `repeats` launches, one after the other."""
        times: list[float] = []
        begin, end = self.driver.new_event(), self.driver.new_event()
        for _ in range(repeats):
            self.driver.record(begin, 0)
            launch()
            self.driver.record(end, 0)
            self.driver.wait(end)
            times.append(self.driver.elapsed(begin, end))
        return times

    def synchronise(self) -> None:
        """Wait until all launches have finished. Raises ArgusError (E409) if a kernel failed."""
        self.driver.synchronise()
