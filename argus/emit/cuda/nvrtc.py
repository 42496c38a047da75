"""Compile CUDA text with NVRTC to a cubin and ptxas's report, or to PTX. Only this file loads NVRTC."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.faults import warned

_LANGUAGE = (b"-std=c++17", b"--fmad=false", b"--diag-suppress=177,550")
"""177, 550: a variable that is not used, or set and not used, such as a user's loop variable or a dead value."""
_OPTIONS = (b"--gpu-architecture=sm_90a", b"--ptxas-options=-v", *_LANGUAGE, b"--no-cache")
"""`--no-cache`: a cached compilation has no ptxas log [NVRTC 13, section 10]."""
_PTX_OPTIONS = (b"--gpu-architecture=compute_90a", *_LANGUAGE)
_LINES = b"-lineinfo"
_WARNING = re.compile(r": warning( #\d|:)")
"""Of the front end; the warnings of ptxas are in its report."""


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
    """Compile for sm_90a. Raises ArgusError: E303 without NVRTC, E304 with the first error line if it fails,
    E307 if it warns.

    lines: add line information, which triples the size of the cubin and changes no instruction.
    """
    begun = _AHEAD.pop((text, name, lines), None)
    return _compiled(text, name, lines=lines) if begun is None else begun.result()


_AHEAD: dict[tuple[str, str, bool], Future[Compiled]] = {}
_MOST_AHEAD = 256


def compile_ahead(text: str, name: str, *, lines: bool = True) -> None:
    """Begin what `compile_cuda` is going to be asked for, in another thread; NVRTC keeps no lock of Python's.

    What goes wrong is raised there. Nothing is begun without NVRTC, or with too much begun that nobody has asked for.
    """
    if compiler_present() and (text, name, lines) not in _AHEAD and len(_AHEAD) < _MOST_AHEAD:
        _AHEAD[text, name, lines] = _threads().submit(_compiled, text, name, lines=lines)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), "nvrtc")


def _compiled(text: str, name: str, *, lines: bool) -> Compiled:
    with _program(text, name, [*_OPTIONS, _LINES] if lines else _OPTIONS) as (nvrtc, program):
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = bytearray(size)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return Compiled(bytes(cubin), _log(nvrtc, program))


def compile_ptx(text: str, name: str) -> str:
    """The PTX for compute_90a, without line information. Raises ArgusError like `compile_cuda`."""
    with _program(text, name, _PTX_OPTIONS) as (nvrtc, program):
        _, size = nvrtc.nvrtcGetPTXSize(program)
        ptx = bytearray(size)
        nvrtc.nvrtcGetPTX(program, ptx)
        return ptx.decode().rstrip("\x00")


@contextmanager
def _program(text: str, name: str, options: Sequence[bytes]) -> Generator[tuple[Any, object]]:
    """The NVRTC module and a compiled program. Raises ArgusError (E303, E304, E307)."""
    nvrtc = bindings()
    if nvrtc is None:
        message = "no CUDA compiler: `cuda.bindings.nvrtc` cannot be imported"
        raise ArgusError(Diagnostic("E303", "error", message, help="pip install 'argus[sm90a]'", kernel=name))
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), 0, None, None)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
    try:
        given = list(options)
        (done,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        log = _log(nvrtc, program)
        if done != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            first = next((line for line in log.splitlines() if "error" in line), log[:200])
            message = f"NVRTC failed on `{name}`: {first.strip()}"
            raise ArgusError(Diagnostic("E304", "error", message, notes=tuple(log.splitlines()[:20]), kernel=name))
        if found := [line for line in log.splitlines() if _WARNING.search(line)]:
            raise warned(name, found)
        yield nvrtc, program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: object) -> str:  # noqa: ANN401 reason: untyped
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.decode(errors="replace").rstrip("\x00\n ")
