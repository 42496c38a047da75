"""A fake CUDA driver: device memory is this process's memory, and a kernel is a Python function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field

from argus.runtime.cuda.driver import Driver

CAPABILITY = {"MAJOR": 9, "MINOR": 0}
Kernel = Callable[[list[int]], None]


class Names:
    """An enumeration of the driver: each name is its own value."""

    def __getattr__(self, name: str) -> str:
        return name


@define
class Pointer:
    """An address on the device as the bindings give it: a number when it is asked for one, and no number itself."""

    address: int

    def __int__(self) -> int:
        return self.address


@define
class FakeDriver:
    """Answers as `cuda.bindings.driver` does.

    kernel: what a launch runs, given its arguments, as many as `pointers` addresses and then `sizes` numbers.
    fails: functions by name, with the status that they answer. calls: the names of all calls.
    symbols: the functions of modules that were asked for. guards: what other functions do, given
    the address of their arguments'. mode: of captures by this thread, and what it was
    when code was loaded.
    launches: function, extents of grid and block, bytes, stream and arguments. overlapping: attributes of each.
    """

    kernel: Kernel | None = None
    pointers: int = 0
    sizes: int = 0
    fails: dict[str, str] = field(factory=dict[str, str])
    devices: int = 1
    capability: dict[str, int] = field(factory=CAPABILITY.copy)
    calls: list[str] = field(factory=list[str])
    launches: list[tuple[Any, ...]] = field(factory=list[tuple[Any, ...]])
    symbols: list[str] = field(factory=list[str])
    guards: dict[str, Callable[[int], None]] = field(factory=dict[str, Callable[[int], None]])
    mode: str = "global"
    names: Sequence[bytes] = ()
    loaded_in: list[str] = field(factory=list[str])
    overlapping: list[list[str]] = field(factory=list[list[str]])
    _memory: list[npt.NDArray[np.uint8]] = field(factory=list[npt.NDArray[np.uint8]])

    @property
    def raw(self) -> Any:  # noqa: ANN401 reason: stands for an untyped module
        kinds = {name: Names() for name in ENUMERATIONS}
        status = SimpleNamespace(CUDA_SUCCESS=SUCCESS)
        functions = {name: self._answering(name) for name in dir(self) if name.startswith("cu")}
        records = {
            "CUlaunchConfig": SimpleNamespace,
            "CUlaunchAttribute": lambda: SimpleNamespace(value=SimpleNamespace()),
        }
        return SimpleNamespace(CUresult=status, cuuint64_t=int, cuuint32_t=int, **kinds, **records, **functions)

    @property
    def driver(self) -> Driver:
        return Driver(self.raw)

    def _answering(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def answer(*arguments: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: as above
            self.calls.append(name)
            if name in self.fails:
                return (SimpleNamespace(name=f"CUDA_ERROR_{self.fails[name]}"),)
            value = getattr(self, name)(*arguments)
            return (SUCCESS,) if value is None else (SUCCESS, value)

        return answer

    def cuInit(self, _flags: int) -> None: ...
    def cuDeviceGetCount(self) -> int:
        return self.devices

    def cuDeviceGet(self, number: int) -> int:
        return number

    def cuDevicePrimaryCtxRetain(self, _device: int) -> str:
        return "context"

    def cuCtxSetCurrent(self, _context: str) -> None: ...
    def cuDeviceGetName(self, _length: int, device: int) -> bytes:
        return (self.names[device] if self.names else b"Imagined GPU") + b"\0\0"

    def cuDeviceGetPCIBusId(self, _length: int, _device: int) -> bytes:
        return b"0000:0B:00.0\0\0"

    def cuDeviceGetAttribute(self, name: str, _device: int) -> int:
        return self.capability[name.rpartition("_")[2]]

    def cuMemAlloc(self, size: int) -> int:
        self._memory.append(np.zeros(size + 16, np.uint8))
        address = self._memory[-1].ctypes.data
        return address + -address % 16

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def cuMemsetD8(self, target: int, byte: int, size: int) -> None:
        ctypes.memset(target, byte, size)

    def cuModuleLoadData(self, code: bytes) -> bytes:
        self.loaded_in.append(self.mode)
        return code

    def cuModuleGetFunction(self, _module: bytes, symbol: bytes) -> str:
        self.symbols.append(symbol.decode())
        return self.symbols[-1]

    def cuThreadExchangeStreamCaptureMode(self, mode: str) -> str:
        before, self.mode = self.mode, mode
        return before

    def cuFuncSetAttribute(self, _function: str, _attribute: str, _value: int) -> None: ...
    def cuTensorMapEncodeTiled(self, *arguments: Any) -> Any:  # noqa: ANN401 reason: as above
        held = ctypes.c_void_p(arguments[2])
        return SimpleNamespace(getPtr=lambda: ctypes.addressof(held))

    def cuLaunchKernelEx(self, *arguments: Any) -> None:  # noqa: ANN401 reason: as above
        config, function, pointers, _ = arguments
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        self.launches.append((function, *grid, *block, config.sharedMemBytes, config.hStream, pointers))
        self.overlapping.append([each.id for each in getattr(config, "attrs", [])])
        if function in self.guards:
            self.guards[function](pointers)
        elif self.kernel is not None:
            places = (ctypes.c_void_p * (self.pointers + self.sizes)).from_address(pointers)
            addresses = [int(place or 0) for place in places]
            found = [ctypes.c_uint64.from_address(each).value for each in addresses[: self.pointers]]
            self.kernel(found + [ctypes.c_int.from_address(each).value for each in addresses[self.pointers :]])

    def cuMemHostAlloc(self, size: int, _flags: int) -> int:
        return self.cuMemAlloc(size)

    def cuMemHostGetDevicePointer(self, address: int, _flags: int) -> Pointer:
        return Pointer(address)

    def cuMemFree(self, _address: int) -> None: ...
    def cuMemsetD8Async(self, _target: int, _byte: int, _size: int, _stream: int) -> None: ...
    def cuEventDestroy(self, _event: str) -> None: ...
    def cuCtxSynchronize(self) -> None: ...
    def cuEventCreate(self, _flags: int) -> str:
        return "event"

    def cuEventRecord(self, _event: str, _stream: int) -> None: ...
    def cuEventSynchronize(self, _event: str) -> None: ...
    def cuEventElapsedTime(self, _begin: str, _end: str) -> float:
        return 0.5


@define
class Clocked(FakeDriver):
    """Events tell how much the kernels before them took.

    share: that events tell of it. took: microseconds of each kernel. computes: what a kernel does, for `launched`.
    """

    share: float = 1.0
    took: float = 400.0
    now: float = 0.0
    computes: Kernel | None = None
    marks: dict[str, float] = field(factory=dict[str, float])

    def cuEventCreate(self, _flags: int) -> str:
        return f"event {len(self.marks)}"

    def cuEventRecord(self, event: str, _stream: int) -> None:
        self.marks[event] = self.share * self.now

    def cuEventElapsedTime(self, begin: str, end: str) -> float:
        return 1e-3 * (self.marks[end] - self.marks[begin])

    def launched(self, arguments: list[int]) -> None:
        self.now += self.took
        assert self.computes is not None
        self.computes(arguments)


SUCCESS = SimpleNamespace(name="CUDA_SUCCESS")
ENUMERATIONS = (
    "CUdevice_attribute",
    "CUfunction_attribute",
    "CUlaunchAttributeID",
    "CUstreamCaptureMode",
    "CUtensorMapDataType",
    "CUtensorMapFloatOOBfill",
    "CUtensorMapInterleave",
    "CUtensorMapL2promotion",
    "CUtensorMapSwizzle",
)
