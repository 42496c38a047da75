"""A stand-in for the HIP runtime, compiled once for all tests: a launch calls a Python function."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from argus.emit.tool import run_tool
from argus.runtime.hip.driver import HipDriver

SOURCE = Path(__file__).with_name("stub_hip.c")
STATUS = {"OutOfMemory": 2, "NoBinaryForGpu": 209, "IllegalAddress": 700, "LaunchTimeOut": 702, "LaunchFailure": 719}
Kernel = Callable[[int], None]
"""What a launch does, given the address of its arguments' addresses."""
_LAUNCH = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_void_p,
    ctypes.c_void_p,
)


def compile_stub(folder: Path) -> Path:
    """The shared library `libamdhip64.so` in the folder."""
    made = folder / "libamdhip64.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    done = run_tool((*command, str(SOURCE), "-o", str(made)), folder, 120)
    assert done is not None, "the compiler did not finish"
    assert done.status == 0, done.errors
    return made


@define
class Stub:
    """The loaded library, reset. launches: symbol, and extents of grid and block with the bytes of LDS, of each."""

    library: ctypes.CDLL
    launches: list[tuple[str, tuple[int, ...]]] = field(factory=list[tuple[str, tuple[int, ...]]])
    _callback: Any = None

    @property
    def driver(self) -> HipDriver:
        return HipDriver(self.library)

    @property
    def calls(self) -> list[str]:
        self.library.stub_log.restype = ctypes.c_char_p
        return self.library.stub_log().decode().split()

    def fail(self, function: str, status: str) -> None:
        self.library.stub_fail(function.encode(), STATUS[status])

    def devices(self, count: int, architecture: str) -> None:
        self.library.stub_devices(count, architecture.encode())

    def run(self, kernels: Mapping[str, Kernel]) -> None:
        """kernels: what a launch does, by symbol."""

        def launched(_code: int, symbol: bytes, shape: Any, _stream: int, arguments: int) -> None:  # noqa: ANN401 reason: ctypes
            self.launches.append((symbol.decode(), tuple(shape[:7])))
            kernels[symbol.decode()](arguments)

        self._callback = _LAUNCH(launched)
        self.library.stub_on_launch(self._callback)
