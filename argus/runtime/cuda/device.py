"""A GPU of this machine, without any framework: memory, copies, and times of launches."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.driver import Driver, installed, no_gpu

Bytes = npt.NDArray[np.uint8]
VISIBLE = "CUDA_VISIBLE_DEVICES"
CAPABILITIES = {"sm_90a": (9, 0)}
"""Compute capability that the code of a target runs on, and on no other."""


@frozen
class Memory:
    """Memory on the device as a row-major tensor of `size` bytes an element."""

    driver: Driver
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
        """contents: as many bytes, in order."""
        if self.bytes:
            self.driver.call("cuMemcpyHtoD", self.pointer, contents.ctypes.data, self.bytes)

    def fill(self, byte: int) -> None:
        if self.bytes:
            self.driver.call("cuMemsetD8", self.pointer, byte, self.bytes)

    def read(self) -> Bytes:
        contents = np.empty(self.bytes, np.uint8)
        if self.bytes:
            self.driver.call("cuMemcpyDtoH", contents.ctypes.data, self.pointer, self.bytes)
        return contents


@frozen
class Device:
    """name: as the driver has it. capability: the compute capability, (9, 0) of an H100 or H200. bus: its place."""

    driver: Driver
    name: str
    capability: tuple[int, int]
    bus: str

    def check_runs(self, target: str) -> None:
        """Raises ArgusError (E407) if the code of this target does not run here."""
        if CAPABILITIES.get(target) != self.capability:
            message = f"this GPU is {self.name} (compute capability {'.'.join(map(str, self.capability))})"
            repair = "run it on an H100 or H200 if it is for sm_90a, or in the interpreter"
            raise ArgusError(Diagnostic("E407", "error", f"{message}, the kernel is for {target}", help=repair))

    def allocate(self, shape: tuple[int, ...], size: int) -> Memory:
        """Uninitialised memory, until `free`. Raises ArgusError (E408) if there is none left."""
        pointer = self.driver.call("cuMemAlloc", max(1, prod(shape) * size))
        return Memory(self.driver, int(pointer), shape, size)

    def free(self, memory: Memory) -> None:
        """Give memory back that `allocate` gave; nothing of it may be in use."""
        self.driver.call("cuMemFree", memory.pointer)

    def timed(self, launch: Callable[[], None], repeats: int) -> list[float]:
        """Milliseconds of each of so many launches, one after the other."""
        times: list[float] = []
        begin, end = self._event(), self._event()
        for _ in range(repeats):
            self.driver.call("cuEventRecord", begin, 0)
            launch()
            self.driver.call("cuEventRecord", end, 0)
            self.driver.call("cuEventSynchronize", end)
            times.append(float(self.driver.call("cuEventElapsedTime", begin, end)))
        return times

    def synchronise(self) -> None:
        """Until everything launched is done. Raises ArgusError (E409) if a kernel failed."""
        self.driver.call("cuCtxSynchronize")

    def _event(self) -> Any:  # noqa: ANN401 reason: untyped
        return self.driver.call("cuEventCreate", 0)


def found(driver: Driver | None = None) -> Device:
    """The first GPU, without making a context on it. Raises ArgusError (E406) if there is none."""
    used = installed() if driver is None else driver
    used.call("cuInit", 0)
    if used.call("cuDeviceGetCount") == 0:
        raise no_gpu("the driver sees none")
    number = used.call("cuDeviceGet", 0)
    capability = (_attribute(used, "MAJOR", number), _attribute(used, "MINOR", number))
    return Device(used, _name(used, number), capability, _text(used.call("cuDeviceGetPCIBusId", 100, number)))


def visible(driver: Driver | None = None) -> tuple[str, ...]:
    """GPUs like the first, each by what `CUDA_VISIBLE_DEVICES` calls it. Raises ArgusError (E406) without a driver."""
    used = installed() if driver is None else driver
    used.call("cuInit", 0)
    named = [each.strip() for each in os.environ.get(VISIBLE, "").split(",") if each.strip()]
    every = range(int(used.call("cuDeviceGetCount")))
    models = [_name(used, used.call("cuDeviceGet", number)) for number in every]
    return tuple(named[number] if named else str(number) for number in every if models[number] == models[0])


def opened(driver: Driver | None = None) -> Device:
    """The first GPU, its context current. Raises ArgusError (E406) if there is none."""
    device = found(driver)
    context = device.driver.call("cuDevicePrimaryCtxRetain", device.driver.call("cuDeviceGet", 0))
    device.driver.call("cuCtxSetCurrent", context)
    return device


def _name(driver: Driver, number: object) -> str:
    return _text(driver.call("cuDeviceGetName", 100, number))


def _text(found: bytes) -> str:
    return found.split(b"\0")[0].decode(errors="replace")


def _attribute(driver: Driver, which: str, number: object) -> int:
    attribute = getattr(driver.raw.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{which}")
    return int(driver.call("cuDeviceGetAttribute", attribute, number))
