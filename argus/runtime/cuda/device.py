"""GPUs of this machine, through the driver alone: memory, copies, and timed launches."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.driver import Driver, find_driver, no_gpu

Bytes = npt.NDArray[np.uint8]
VISIBLE = "CUDA_VISIBLE_DEVICES"
CAPABILITIES = {"sm_90a": (9, 0)}
"""The only compute capability that runs the code of a target."""


@frozen
class Memory:
    """Device memory as a row-major tensor with elements of `size` bytes."""

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
        """Copy from the host. contents: exactly `bytes` bytes, in row-major order."""
        if self.bytes:
            self.driver.call("cuMemcpyHtoD", self.pointer, contents.ctypes.data, self.bytes)

    def fill(self, byte: int) -> None:
        if self.bytes:
            self.driver.call("cuMemsetD8", self.pointer, byte, self.bytes)

    def read(self) -> Bytes:
        """Copy to the host."""
        contents = np.empty(self.bytes, np.uint8)
        if self.bytes:
            self.driver.call("cuMemcpyDtoH", contents.ctypes.data, self.pointer, self.bytes)
        return contents


@frozen
class Device:
    """A GPU. name: from the driver. capability: the compute capability, (9, 0) for H100 and H200. bus: PCI bus id."""

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
        """Uninitialised memory, to be released by `free`. Raises ArgusError (E408) if there is not enough."""
        pointer = self.driver.call("cuMemAlloc", max(1, prod(shape) * size))
        return Memory(self.driver, int(pointer), shape, size)

    def free(self, memory: Memory) -> None:
        """Release memory from `allocate`; the GPU must no longer be using it."""
        self.driver.call("cuMemFree", memory.pointer)

    def timed(self, launch: Callable[[], None], repeats: int) -> list[float]:
        """Milliseconds of each of `repeats` launches, one after the other."""
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
        """Wait until all launches have finished. Raises ArgusError (E409) if a kernel failed."""
        self.driver.call("cuCtxSynchronize")

    def _event(self) -> Any:  # noqa: ANN401 reason: untyped
        return self.driver.call("cuEventCreate", 0)


def find_gpu(driver: Driver | None = None) -> Device:
    """The first GPU, without creating a context on it. Raises ArgusError (E406) if there is none."""
    used = find_driver() if driver is None else driver
    used.call("cuInit", 0)
    if used.call("cuDeviceGetCount") == 0:
        raise no_gpu("the driver sees none")
    number = used.call("cuDeviceGet", 0)
    capability = (_attribute(used, "MAJOR", number), _attribute(used, "MINOR", number))
    return Device(used, _name(used, number), capability, _text(used.call("cuDeviceGetPCIBusId", 100, number)))


def visible_gpus(driver: Driver | None = None) -> tuple[str, ...]:
    """GPUs of the first one's model, named as in `CUDA_VISIBLE_DEVICES`. Raises ArgusError (E406) without a driver."""
    used = find_driver() if driver is None else driver
    used.call("cuInit", 0)
    named = [each.strip() for each in os.environ.get(VISIBLE, "").split(",") if each.strip()]
    every = range(int(used.call("cuDeviceGetCount")))
    models = [_name(used, used.call("cuDeviceGet", number)) for number in every]
    return tuple(named[number] if named else str(number) for number in every if models[number] == models[0])


def open_gpu(driver: Driver | None = None) -> Device:
    """The first GPU, with its primary context current. Raises ArgusError (E406) if there is none."""
    device = find_gpu(driver)
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
