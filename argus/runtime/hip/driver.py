"""Calls of the HIP runtime, with its errors as diagnostics; the only module that loads its library."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.gpu.driver import Code, GpuDriver, LaunchShape, TensorMap, TensorMapLayout, no_gpu
from argus.runtime.gpu.failures import explained
from argus.runtime.hip.status_codes import meaning_of

LIBRARY = "ARGUS_HIP_LIBRARY"
"""The environment variable that names another library to load."""
_NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so")
_MAPS = Path("/proc/self/maps")
_PORTABLE, _MAPPED, _COHERENT = 1, 2, 0x40000000
"""Flags of `hipHostMalloc`: coherent memory shows a kernel's writes to the host before the kernel ends."""
_RELAXED = 2
"""`hipStreamCaptureModeRelaxed`."""
_TEXT, _PROPERTIES = 256, 8192
"""Bytes for names, and more than any version's `hipDeviceProp_t` has."""
_ARCHITECTURE = re.compile(rb"gfx[0-9a-f]{3,4}")
_MEASURING = (
    "hipMemcpyDtoH",
    "hipMemcpyHtoD",
    "hipMemsetD8",
    "hipDeviceSynchronize",
    "hipEventCreate",
    "hipEventRecord",
    "hipEventSynchronize",
    "hipEventElapsedTime",
)


@frozen
class _Function:
    """A loaded function. code: its code object, which HIP may read again later."""

    handle: int
    code: bytes


@frozen
class HipDriver:
    """The HIP runtime as a `GpuDriver`. library: `libamdhip64.so`, or one with the same functions."""

    library: ctypes.CDLL
    api: ClassVar[str] = "HIP"
    code_suffix: ClassVar[str] = ".hsaco"

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises ArgusError: E405 to E410 for another status than success, E405 if it is missing."""
        try:
            function = getattr(self.library, name)
        except AttributeError:
            message = f"this version of the HIP runtime has no function `{name}`"
            raise ArgusError(Diagnostic("E405", "error", message, help="install ROCm 6 or later")) from None
        status = int(function(*arguments))
        if status:
            raise self._error(status, name)

    def _error(self, status: int, name: str) -> ArgusError:
        describe = self.library.hipGetErrorName
        describe.restype = ctypes.c_char_p
        text = cast("bytes | None", describe(status))
        shown = text.decode(errors="replace") if text else f"status {status}"
        return explained(self, meaning_of(shown).error(shown, name))

    def _number(self, name: str, *arguments: object) -> int:
        """The number that a function stores through its first argument."""
        found = ctypes.c_int(0)
        self.call(name, ctypes.byref(found), *arguments)
        return found.value

    def _handle(self, name: str, *arguments: object) -> int:
        """The address or handle that a function stores through its first argument."""
        found = ctypes.c_void_p(0)
        self.call(name, ctypes.byref(found), *arguments)
        return int(found.value or 0)

    # -- devices and contexts --------------------------------------------------------------------------------

    def devices(self) -> int:
        self.call("hipInit", 0)
        return self._number("hipGetDeviceCount")

    def name_of(self, device: int) -> str:
        text = ctypes.create_string_buffer(_TEXT)
        self.call("hipDeviceGetName", text, _TEXT, device)
        return text.value.decode(errors="replace")

    def architecture_of(self, device: int) -> str:
        """`gfx` and a number; where in `hipDeviceProp_t` it stands depends on the version, so it is searched for."""
        properties = ctypes.create_string_buffer(_PROPERTIES)
        current = hasattr(self.library, "hipGetDevicePropertiesR0600")
        self.call("hipGetDevicePropertiesR0600" if current else "hipGetDeviceProperties", properties, device)
        found = _ARCHITECTURE.search(properties.raw)
        return found[0].decode() if found else "unknown"

    def bus_of(self, device: int) -> str:
        text = ctypes.create_string_buffer(_TEXT)
        self.call("hipDeviceGetPCIBusId", text, _TEXT, device)
        return text.value.decode(errors="replace")

    def context_of(self, device: int) -> object:
        """The device's number: HIP has one context a device."""
        return device

    def enter(self, context: object) -> None:
        self.call("hipSetDevice", context)

    def synchronise(self) -> None:
        self.call("hipDeviceSynchronize")

    def version(self) -> str:
        try:
            number = self._number("hipRuntimeGetVersion")
        except ArgusError:
            return ""
        return f"{number // 10_000_000}.{number // 100_000 % 100}"

    # -- memory ----------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        return self._handle("hipMalloc", ctypes.c_size_t(size))

    def free(self, address: int) -> None:
        self.call("hipFree", _at(address))

    def copy_in(self, address: int, source: int, size: int) -> None:
        self.call("hipMemcpyHtoD", _at(address), _at(source), ctypes.c_size_t(size))

    def copy_out(self, target: int, address: int, size: int) -> None:
        self.call("hipMemcpyDtoH", _at(target), _at(address), ctypes.c_size_t(size))

    def fill(self, address: int, byte: int, size: int) -> None:
        self.call("hipMemsetD8", _at(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size))

    def fill_in_stream(self, address: int, byte: int, size: int, stream: int) -> None:
        self.call("hipMemsetD8Async", _at(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size), _at(stream))

    def mapped_host_memory(self, size: int) -> int:
        return self._handle("hipHostMalloc", ctypes.c_size_t(size), _PORTABLE | _MAPPED | _COHERENT)

    def device_address(self, address: int) -> int:
        return self._handle("hipHostGetDevicePointer", _at(address), 0)

    # -- events ----------------------------------------------------------------------------------------------

    def new_event(self) -> object:
        return self._handle("hipEventCreate")

    def record(self, event: object, stream: int) -> None:
        self.call("hipEventRecord", _at(event), _at(stream))

    def wait(self, event: object) -> None:
        self.call("hipEventSynchronize", _at(event))

    def elapsed(self, begin: object, end: object) -> float:
        found = ctypes.c_float(0)
        self.call("hipEventElapsedTime", ctypes.byref(found), _at(begin), _at(end))
        return found.value

    def drop(self, event: object) -> None:
        self.call("hipEventDestroy", _at(event))

    def instruments(self) -> tuple[object, ...]:
        return tuple(getattr(self.library, name) for name in _MEASURING)

    # -- code ------------------------------------------------------------------------------------------------

    def load(self, code: bytes, symbol: str, shared_bytes: int, others: Sequence[str] = ()) -> Code:  # noqa: ARG002 reason: the code states it
        """shared_bytes is not used: code objects for AMD GPUs state the LDS that they need."""
        mode = ctypes.c_int(_RELAXED)
        self.call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            module = self._handle("hipModuleLoadData", code)
            handles = [self._handle("hipModuleGetFunction", _at(module), name.encode()) for name in (symbol, *others)]
        finally:
            self.call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        function, *found = [_Function(handle, code) for handle in handles]
        return Code(function, dict(zip(others, found, strict=True)))

    def encode_tensor_map(self, layout: TensorMapLayout, address: int) -> TensorMap:  # noqa: ARG002 reason: refused
        message = "AMD GPUs have no tensor maps, and the kernel takes one"
        raise ArgusError(Diagnostic("E405", "error", message, help="build it for gfx942"))

    def launcher(
        self,
        function: object,
        shape: LaunchShape,
        places: Sequence[int],
        alive: object,
        stream: int,
        *,
        early: bool,  # noqa: ARG002 reason: no overlap
    ) -> Callable[[], None]:
        """HIP does not overlap launches, so `early` changes nothing."""
        pointers = (ctypes.c_void_p * len(places))(*places)
        call = self.library.hipModuleLaunchKernel
        assert isinstance(function, _Function)
        arguments = (_at(function.handle), *map(ctypes.c_uint, shape), _at(stream), pointers, None)

        def launch(_alive: object = (alive, function)) -> None:
            status = int(call(*arguments))
            if status:
                raise self._error(status, "hipModuleLaunchKernel")

        return launch


def _at(address: object) -> ctypes.c_void_p:
    return ctypes.c_void_p(cast(int, address))


@cache
def _library(named: str) -> ctypes.CDLL | None:
    """The library of that name, or that of this process, or of its usual names; None where it cannot be loaded."""
    for name in (named,) if named else (*loaded_libraries(), *_NAMES):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def loaded_libraries(maps: Path = _MAPS) -> tuple[str, ...]:
    """The paths of HIP runtimes that this process has loaded, such as the one in torch's package: memory and streams of
    one runtime are unknown to another. maps: the file in which Linux lists what is mapped.
    """
    try:
        lines = maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    paths = (line.split(maxsplit=5)[5] for line in lines if "/libamdhip64.so" in line)
    return tuple(dict.fromkeys(paths))


def find_driver() -> GpuDriver:
    """The HIP runtime of this machine. Raises ArgusError (E406) where its library cannot be loaded."""
    named = os.environ.get(LIBRARY, "")
    library = _library(named)
    if library is None:
        name = named or "libamdhip64.so"
        raise no_gpu(f"the HIP runtime `{name}` cannot be loaded", f"install ROCm, or name its library in {LIBRARY}")
    return HipDriver(library)
