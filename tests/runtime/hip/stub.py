"""A stand-in for the HIP runtime, compiled for tests: a launch executes the machine code on the CPU."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from argus.emit.tool import run_tool
from argus.interp.gfx942.code_object import read_code_object
from argus.interp.gfx942.findings import Finding
from argus.interp.gfx942.launch import Tensor, execute
from argus.runtime.hip.driver import HipDriver

SOURCE = Path(__file__).with_name("stub_hip.c")
STATUS = {"OutOfMemory": 2, "NoBinaryForGpu": 209, "IllegalAddress": 700, "LaunchTimeOut": 702, "LaunchFailure": 719}
_LAUNCH = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_void_p,
)


def compile_stub(folder: Path) -> Path:
    """The shared library in the folder, of a name by which no other test finds it."""
    made = folder / "libhip_stand_in.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    done = run_tool((*command, str(SOURCE), "-o", str(made)), folder, 120)
    assert done is not None, "the compiler did not finish"
    assert done.status == 0, done.errors
    return made


@define
class Stub:
    """The loaded library, reset. launches: symbol, and extents of grid and block with the bytes of LDS, of each.

    findings: of the machine code, in all launches. A trap is none: it ends the device. idle: kernels whose launches
    execute nothing. executing: whether those of others do.
    """

    library: ctypes.CDLL
    launches: list[tuple[str, tuple[int, ...]]] = field(factory=list[tuple[str, tuple[int, ...]]])
    findings: list[Finding] = field(factory=list[Finding])
    idle: set[str] = field(factory=set[str])
    executing: bool = True
    _callback: Any = None

    def __attrs_post_init__(self) -> None:
        self.library.stub_log.restype = ctypes.c_char_p
        self.library.stub_size.restype = ctypes.c_uint64
        self.library.stub_clear()
        self._callback = _LAUNCH(self._launched)
        self.library.stub_on_launch(self._callback)

    @property
    def driver(self) -> HipDriver:
        return HipDriver(self.library)

    @property
    def calls(self) -> list[str]:
        return self.library.stub_log().decode().split()

    def fail(self, function: str, status: str) -> None:
        self.library.stub_fail(function.encode(), STATUS[status])

    def devices(self, count: int, architecture: str) -> None:
        self.library.stub_devices(count, architecture.encode())

    def _launched(self, code: int, size: int, symbol: bytes, shape: Any, arguments: int) -> None:  # noqa: ANN401 reason: ctypes
        """Execute a launch on the bytes of each allocation that its arguments point to."""
        name, extents = symbol.decode(), tuple(shape[:7])
        self.launches.append((name, extents))
        if name in self.idle or not self.executing:
            return
        read = read_code_object(ctypes.string_at(code, size))
        shown = [each for each in read.kernel(name).arguments if not each.kind.startswith("hidden")]
        places = (ctypes.c_void_p * len(shown)).from_address(arguments)
        given: list[Tensor | int] = []
        for number, (each, place) in enumerate(zip(shown, places, strict=True)):
            value = int.from_bytes(ctypes.string_at(place or 0, each.size), "little")
            points = each.kind == "global_buffer" and value  # a null pointer is to nothing
            given.append(self._tensor(f"argument {number}", value) if points else value)
        done = execute(read, name, extents[:3], extents[3], given)
        traps = [each for each in done.findings if each.kind == "trap"]
        self.findings += [each for each in done.findings if each not in traps]
        if traps:
            self.library.stub_stop(STATUS["LaunchFailure"])
        for each in given:
            if isinstance(each, Tensor):
                each.held[:] = done.tensors[each.name]

    def at(self, address: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The bytes from an address to the end of the allocation that it lies in; KeyError where there is none."""
        size = int(self.library.stub_size(ctypes.c_void_p(address)))
        if not size:
            raise KeyError(hex(address))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def _tensor(self, name: str, address: int) -> Tensor:
        return Tensor(name, self.at(address), written=True)
