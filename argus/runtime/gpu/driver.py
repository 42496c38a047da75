"""The interface of a GPU's driver library, which the CUDA driver and the HIP runtime implement.

Addresses are numbers, sizes bytes, and times milliseconds. Every method raises ArgusError: E406 without a driver or
GPU, E407 for code of another GPU, E408 if memory is exhausted, E409 if a kernel failed, E410 if the driver stopped one,
E405 for any other error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic

LaunchShape = tuple[int, ...]
"""Extents of the grid (x, y, z) and of a block (x, y, z), and the bytes of dynamic shared memory."""


@frozen
class Code:
    """Loaded code. function: its kernel. others: further entry points, by symbol."""

    function: object
    others: Mapping[str, object]


class TensorMap(Protocol):
    """An encoded tensor map, an argument of a kernel."""

    def getPtr(self) -> int:  # noqa: N802 reason: the bindings' name
        """The host address of the map."""
        ...


@frozen
class TensorMapLayout:
    """What a TMA tensor map describes: shape and box in elements, strides in bytes of all axes but the last.

    swizzle: span in bytes, 0 for none.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


class GpuDriver(Protocol):
    """A GPU's driver library. api: its name. code_suffix: of the files with code that it loads."""

    api: ClassVar[str]
    code_suffix: ClassVar[str]

    def devices(self) -> int:
        """How many GPUs the driver sees."""
        ...

    def name_of(self, device: int) -> str: ...

    def architecture_of(self, device: int) -> str:
        """The instruction set of a GPU, such as `sm_90` or `gfx942`."""
        ...

    def bus_of(self, device: int) -> str:
        """The PCI bus id."""
        ...

    def context_of(self, device: int) -> object: ...

    def enter(self, context: object) -> None:
        """Make the context current in this thread."""
        ...

    def synchronise(self) -> None:
        """Wait until all launches have finished."""
        ...

    def version(self) -> str:
        """The version of the driver's interface, such as 13.0; empty where it reports none."""
        ...

    def allocate(self, size: int) -> int: ...
    def free(self, address: int) -> None: ...

    def copy_in(self, address: int, source: int, size: int) -> None:
        """Copy from the host's memory at `source` to the device's at `address`."""
        ...

    def copy_out(self, target: int, address: int, size: int) -> None:
        """Copy from the device's memory at `address` to the host's at `target`."""
        ...

    def fill(self, address: int, byte: int, size: int) -> None: ...
    def fill_in_stream(self, address: int, byte: int, size: int, stream: int) -> None: ...

    def mapped_host_memory(self, size: int) -> int:
        """The address of host memory that kernels can write to; see `device_address`."""
        ...

    def device_address(self, address: int) -> int:
        """The address of mapped host memory for kernels."""
        ...

    def new_event(self) -> object: ...
    def record(self, event: object, stream: int) -> None: ...
    def wait(self, event: object) -> None: ...
    def elapsed(self, begin: object, end: object) -> float: ...
    def drop(self, event: object) -> None: ...

    def instruments(self) -> tuple[object, ...]:
        """The library's functions that a measurement relies on, to tell whether they were replaced."""
        ...

    def load(self, code: bytes, symbol: str, shared_bytes: int, others: Sequence[str] = ()) -> Code:
        """Load code into the current context. shared_bytes: the most dynamic shared memory of a block."""
        ...

    def encode_tensor_map(self, layout: TensorMapLayout, address: int) -> TensorMap:
        """A tensor map of the tensor at an address. Raises ArgusError (E405) where the GPU has none."""
        ...

    def launcher(
        self, function: object, shape: LaunchShape, places: Sequence[int], alive: object, stream: int, *, early: bool
    ) -> Callable[[], None]:
        """A function that launches a kernel.

        places: the host addresses of its arguments. alive: the objects there, which the function keeps alive. early:
        whether the kernel may begin before its predecessor in the stream has finished, as it waits for it itself.
        """
        ...


def no_gpu(reason: str, repair: str = "run it on a machine with a GPU, or in the interpreter") -> ArgusError:
    return ArgusError(Diagnostic("E406", "error", f"no GPU to run on: {reason}", help=repair))
