"""Disassemble a cubin with `nvdisasm`, of the pip package `nvidia-cuda-nvdisasm`."""

from __future__ import annotations

import tempfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.tool import run_tool

DISASSEMBLE_SECONDS = 120.0
_PACKAGE = "nvidia-cuda-nvdisasm"
_PROGRAM = "nvdisasm"
INSTALL = "pip install 'argus[sm90a]'"
"""The command that installs it."""


def disassembler() -> Path | None:
    """The program's path; None if the package is not installed in this environment."""
    try:
        installed = files(_PACKAGE) or ()
    except PackageNotFoundError:
        return None
    found = (Path(str(path.locate())) for path in installed if path.stem == _PROGRAM)
    return next((path for path in found if path.is_file()), None)


def disassemble(cubin: bytes, name: str) -> str:
    """The machine code as text, each instruction after its line in the emitted text, calls of inlined functions last.

    Raises ArgusError: E303 without the disassembler, E304 if it fails.
    """
    program = disassembler()
    if program is None:
        message = f"no disassembler: the package `{_PACKAGE}` is not installed"
        raise ArgusError(Diagnostic("E303", "error", message, help=INSTALL, kernel=name))
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code.cubin"
        code.write_bytes(cubin)
        done = run_tool(
            (str(program), "--print-code", "--print-line-info-inline", str(code)), code.parent, DISASSEMBLE_SECONDS
        )
    if done is None or done.status != 0:
        what = f"did not finish within {DISASSEMBLE_SECONDS:g} s" if done is None else done.errors.strip()
        message = f"`{_PROGRAM}` failed on the machine code of `{name}`: {what}"
        raise ArgusError(Diagnostic("E304", "error", message, kernel=name))
    return done.output
