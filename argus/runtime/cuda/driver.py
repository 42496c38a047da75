"""Calls of the CUDA driver, with its errors as diagnostics; the only module that loads the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.status_codes import meaning_of
from argus.runtime.cuda.tensor_maps import encoding
from argus.runtime.gpu.driver import Code, LaunchShape, TensorMapLayout, no_gpu
from argus.runtime.gpu.failures import explained

_PORTABLE, _MAPPED = 1, 2
_TEXT = 100
_STATIC = 48 << 10
"""Bytes of shared memory that a launch has without asking."""
_MEASURING = (
    "cuMemcpyDtoH",
    "cuMemcpyHtoD",
    "cuMemsetD8",
    "cuCtxSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
)


@cache
def bindings() -> Any:  # noqa: ANN401 reason: untyped
    """The module `cuda.bindings.driver`, or None where it is not installed. Loaded on demand: it is slow to import."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        return None


@frozen
class Driver:
    """The CUDA driver. raw: the module `cuda.bindings.driver`, or an object with the same interface."""

    raw: Any
    api: ClassVar[str] = "CUDA"
    code_suffix: ClassVar[str] = ".cubin"

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 reason: untyped
        """The function's results: an empty list, one value, or a list of several.

        Raises ArgusError: E406 without a driver or GPU, E407 for code of another GPU, E408 if memory is exhausted, E409
        if a kernel failed, or E402 if a guard says why, E410 if the driver stopped one, E405 for any other error.
        """
        try:
            status, *values = getattr(self.raw, name)(*arguments)
        except RuntimeError as problem:
            raise no_gpu(f"the CUDA driver is not installed ({problem})") from None
        except ValueError as problem:
            raise meaning_of("").error(f"a status unknown to its bindings ({problem})", name) from None
        if status != self.raw.CUresult.CUDA_SUCCESS:
            raise explained(self, meaning_of(status.name).error(status.name, name))
        return values[0] if len(values) == 1 else values

    # -- devices and contexts --------------------------------------------------------------------------------

    def devices(self) -> int:
        self.call("cuInit", 0)
        return int(self.call("cuDeviceGetCount"))

    def name_of(self, device: int) -> str:
        return _text(self.call("cuDeviceGetName", _TEXT, self.call("cuDeviceGet", device)))

    def architecture_of(self, device: int) -> str:
        """`sm_` and the compute capability, such as `sm_90`."""
        number = self.call("cuDeviceGet", device)
        return "sm_" + "".join(str(self._attribute(part, number)) for part in ("MAJOR", "MINOR"))

    def bus_of(self, device: int) -> str:
        return _text(self.call("cuDeviceGetPCIBusId", _TEXT, self.call("cuDeviceGet", device)))

    def context_of(self, device: int) -> object:
        return self.call("cuDevicePrimaryCtxRetain", self.call("cuDeviceGet", device))

    def enter(self, context: object) -> None:
        self.call("cuCtxSetCurrent", context)

    def synchronise(self) -> None:
        self.call("cuCtxSynchronize")

    def version(self) -> str:
        try:
            number = int(self.call("cuDriverGetVersion"))
        except ArgusError:
            return ""
        return f"{number // 1000}.{number % 1000 // 10}"

    def _attribute(self, part: str, number: object) -> int:
        attribute = getattr(self.raw.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}")
        return int(self.call("cuDeviceGetAttribute", attribute, number))

    # -- memory ----------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        return int(self.call("cuMemAlloc", size))

    def free(self, address: int) -> None:
        self.call("cuMemFree", address)

    def copy_in(self, address: int, source: int, size: int) -> None:
        self.call("cuMemcpyHtoD", address, source, size)

    def copy_out(self, target: int, address: int, size: int) -> None:
        self.call("cuMemcpyDtoH", target, address, size)

    def fill(self, address: int, byte: int, size: int) -> None:
        self.call("cuMemsetD8", address, byte, size)

    def fill_in_stream(self, address: int, byte: int, size: int, stream: int) -> None:
        self.call("cuMemsetD8Async", address, byte, size, stream)

    def mapped_host_memory(self, size: int) -> int:
        with relaxed_capture(self):
            return int(self.call("cuMemHostAlloc", size, _PORTABLE | _MAPPED))

    def device_address(self, address: int) -> int:
        return int(self.call("cuMemHostGetDevicePointer", address, 0))

    # -- events ----------------------------------------------------------------------------------------------

    def new_event(self) -> object:
        return self.call("cuEventCreate", 0)

    def record(self, event: object, stream: int) -> None:
        self.call("cuEventRecord", event, stream)

    def wait(self, event: object) -> None:
        self.call("cuEventSynchronize", event)

    def elapsed(self, begin: object, end: object) -> float:
        return float(self.call("cuEventElapsedTime", begin, end))

    def drop(self, event: object) -> None:
        self.call("cuEventDestroy", event)

    def instruments(self) -> tuple[object, ...]:
        return tuple(getattr(self.raw, name) for name in _MEASURING)

    # -- code ------------------------------------------------------------------------------------------------

    def load(self, code: bytes, symbol: str, shared_bytes: int, others: Sequence[str] = ()) -> Code:
        attribute = self.raw.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with relaxed_capture(self):
            module = self.call("cuModuleLoadData", code)
            function = self.call("cuModuleGetFunction", module, symbol.encode())
            self.call("cuFuncSetAttribute", function, attribute, shared_bytes)
            found = {name: self.call("cuModuleGetFunction", module, name.encode()) for name in others}
            for each in found.values() if shared_bytes > _STATIC else ():
                self.call("cuFuncSetAttribute", each, attribute, shared_bytes)
        return Code(function, found)

    def encode_tensor_map(self, layout: TensorMapLayout, address: int) -> Any:  # noqa: ANN401 reason: untyped
        return self.call("cuTensorMapEncodeTiled", *encoding(self.raw, layout, address))

    def launcher(
        self, function: object, shape: LaunchShape, places: Sequence[int], alive: object, stream: int, *, early: bool
    ) -> Callable[[], None]:
        configuration = self._configuration(shape, stream, early=early)
        pointers = (ctypes.c_void_p * len(places))(*places)
        address = ctypes.addressof(cast("ctypes.c_void_p", pointers))
        call, success = self.raw.cuLaunchKernelEx, self.raw.CUresult.CUDA_SUCCESS

        def launch(_alive: object = (alive, pointers)) -> None:
            (status,) = call(configuration, function, address, 0)
            if status != success:
                raise explained(self, meaning_of(status.name).error(status.name, "cuLaunchKernelEx"))

        return launch

    def _configuration(self, shape: LaunchShape, stream: int, *, early: bool) -> Any:  # noqa: ANN401 reason: untyped
        """The driver's launch configuration."""
        made = self.raw.CUlaunchConfig()
        made.gridDimX, made.gridDimY, made.gridDimZ, made.blockDimX, made.blockDimY, made.blockDimZ = shape[:6]
        made.sharedMemBytes, made.hStream = shape[6], stream
        if early:
            overlap = self.raw.CUlaunchAttribute()
            overlap.id = self.raw.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            overlap.value.programmaticStreamSerializationAllowed = 1
            made.attrs, made.numAttrs = [overlap], 1
        return made


def _text(found: bytes) -> str:
    return found.split(b"\0")[0].decode(errors="replace")


@contextmanager
def relaxed_capture(driver: Driver) -> Generator[None]:
    """Allow calls, such as loading code, that a CUDA graph capture by this thread would forbid, uncaptured."""
    relaxed = driver.raw.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = driver.call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        driver.call("cuThreadExchangeStreamCaptureMode", before)


def find_driver() -> Driver:
    """The driver of this machine. Raises ArgusError (E406) without its bindings."""
    raw = bindings()
    if raw is None:
        raise no_gpu("the bindings of the CUDA driver are not installed", "pip install 'argus[sm90a]'")
    return Driver(raw)
