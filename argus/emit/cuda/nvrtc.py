"""Compile CUDA text with NVRTC to a cubin and ptxas's report. Only this file loads NVRTC."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic

_OPTIONS = (b"--gpu-architecture=sm_90a", b"--ptxas-options=-v", b"-std=c++17", b"--fmad=false", b"--no-cache")
"""`--no-cache`: a cached compilation has no ptxas log [NVRTC 13, section 10]."""
_LINES = b"-lineinfo"


@frozen
class Compiled:
    """cubin: machine code. log: output of the compiler and ptxas."""

    cubin: bytes
    log: str


@cache
def bindings() -> Any:  # noqa: ANN401 reason: untyped
    """The NVRTC module, None if not installed. Imported on first use: only sm_90a needs it, and the import is slow."""
    try:
        return import_module("cuda.bindings.nvrtc")
    except ImportError:
        return None


def compiler_present() -> bool:
    """Whether NVRTC is installed in this environment."""
    return bindings() is not None


def compile_cuda(text: str, name: str, *, lines: bool = True) -> Compiled:
    """Compile for sm_90a. Raises ArgusError: E303 without NVRTC, E304 with the first error line if it fails.

    lines: add line information, which triples the size of the cubin and changes no instruction.
    """
    nvrtc = bindings()
    if nvrtc is None:
        message = "no CUDA compiler: `cuda.bindings.nvrtc` cannot be imported"
        raise ArgusError(Diagnostic("E303", "error", message, help="pip install 'argus[sm90a]'", kernel=name))
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), 0, None, None)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
    try:
        options = [*_OPTIONS, _LINES] if lines else list(_OPTIONS)
        (done,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _log(nvrtc, program)
        if done != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            first = next((line for line in log.splitlines() if "error" in line), log[:200])
            message = f"NVRTC failed on `{name}`: {first.strip()}"
            raise ArgusError(Diagnostic("E304", "error", message, notes=tuple(log.splitlines()[:20]), kernel=name))
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = bytearray(size)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return Compiled(bytes(cubin), log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: object) -> str:  # noqa: ANN401 reason: untyped
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.decode(errors="replace").rstrip("\x00\n ")
