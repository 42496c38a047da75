"""Run the gfx942 compiler: clang and lld of the pip package `ziglang`."""

from __future__ import annotations

import errno
import importlib.util
import os
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.faults import warned
from argus.emit.tool import run_tool

_CLANG = (
    *("-x", "hip", "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", "--cuda-device-only", "-O3", "-std=c++17"),
    *("-ffp-contract=off", "-fuse-cuid=none", "-Wall", "-Wno-unused-function", "-Wno-unused-variable"),
    "-Wno-unused-but-set-variable",
    *("-Wshadow", "-Wconditional-uninitialized", "-Wconversion", "-Wno-sign-conversion", "-Wno-pass-failed"),
    *("-S", "-Rpass-analysis=kernel-resource-usage"),
)
_LINES = ("-gline-tables-only",)
_HELPERS = ("__attribute__((always_inline))", "__attribute__((always_inline, nodebug))")
"""Inlined code without lines of its own gets the line of the call."""
_ASSEMBLER = ("-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-x", "assembler", "-c")
_SHOWN_LINES = 8


@frozen
class Compiled:
    """Files of a compiled kernel: source, assembly, code object; and the compiler's remarks."""

    source: Path
    assembly: Path
    code: Path
    assembly_text: str
    remarks: str


def compiler_present() -> bool:
    """Whether `ziglang` is installed in this environment."""
    return importlib.util.find_spec("ziglang") is not None


def compile_hip(
    text: str,
    stem: str,
    directory: Path,
    timeout: float,
    *,
    lines: bool = False,
    numbers: Sequence[int] = (),
) -> Compiled:
    """Compile for gfx942 and write `stem`.hip, .s and .hsaco into the directory after all three steps succeed.

    timeout: seconds that each of the three steps may take. lines: whether the code object gets a line table, in which
    the code of a helper has the line that calls it; the machine code is the same. numbers: under which number each line
    of the text stands in that table, by default its own.
    Raises ArgusError: E302 if a file cannot be written, E303 if the compiler is missing, E304 if it fails, E307 if it
    warns of a mistake.
    """
    if not compiler_present():
        raise _missing(stem)
    with _scratch(directory, stem) as scratch:
        _write(scratch / f"{stem}.hip", "\n".join(_located(text, numbers)) if lines else text)
        options = (*_CLANG, *(_LINES if lines else ()))
        remarks = _run(("clang", *options, f"{stem}.hip", "-o", f"{stem}.s"), scratch, stem, timeout)
        if found := [line for line in remarks.splitlines() if ": warning: " in line]:
            raise warned(stem, found)
        _run(("clang", *_ASSEMBLER, f"{stem}.s", "-o", f"{stem}.o"), scratch, stem, timeout)
        _run(("ld.lld", "-shared", f"{stem}.o", "-o", f"{stem}.hsaco"), scratch, stem, timeout)
        _write(scratch / f"{stem}.hip", text)
        assembly = (scratch / f"{stem}.s").read_text(encoding="utf-8")
        source, listing, code = (_publish(scratch / f"{stem}{end}", directory) for end in (".hip", ".s", ".hsaco"))
    return Compiled(source, listing, code, assembly, remarks)


def _located(text: str, numbers: Sequence[int]) -> Iterator[str]:
    """The lines of a text that is compiled with lines."""
    rows = text.replace(*_HELPERS, 1).split("\n")
    follows = 1
    for row, number in zip(rows, numbers or range(1, len(rows) + 1), strict=True):
        if number != follows:
            yield f"#line {number}"
        yield row
        follows = number + 1


def write_files(files: Mapping[str, str | bytes], directory: Path, stem: str) -> tuple[Path, ...]:
    """Write files into the directory, each atomically. Raises ArgusError (E302)."""
    with _scratch(directory, stem) as scratch:
        for name, text in files.items():
            _write(scratch / name, text)
        return tuple(_publish(scratch / name, directory) for name in files)


@contextmanager
def _scratch(directory: Path, stem: str) -> Generator[Path]:
    """A temporary folder on the outputs' file system."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{stem}-", dir=directory, ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise _unwritable(directory, error, stem) from error


def _write(path: Path, text: str | bytes) -> None:
    if isinstance(text, bytes):
        path.write_bytes(text)
        return
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _publish(path: Path, directory: Path) -> Path:
    return path.replace(directory / path.name)


def _run(arguments: Sequence[str], scratch: Path, stem: str, timeout: float) -> str:
    """Run one step; returns its standard error."""
    done = run_tool((sys.executable, "-m", "ziglang", *arguments), scratch, timeout)
    if done is None:
        raise _failed(stem, f"the compiler did not finish within {timeout:g} s", "")
    if os.strerror(errno.ENOSPC) in done.errors:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if done.status != 0:
        raise _failed(stem, f"`{arguments[0]}` ended with status {done.status}", done.errors)
    return done.errors


def _missing(stem: str) -> ArgusError:
    return ArgusError(
        Diagnostic(
            "E303",
            "error",
            f"no compiler for gfx942: the package `ziglang` is not installed for {sys.executable}",
            help="pip install 'argus[gfx942]'",
            kernel=stem,
        )
    )


def _failed(stem: str, what: str, output: str) -> ArgusError:
    errors = [line for line in output.splitlines() if "error" in line] or output.splitlines()
    return ArgusError(
        Diagnostic(
            "E304",
            "error",
            f"the text of `{stem}` did not compile: {what}",
            facts=(("compiler", "\n".join(errors[:_SHOWN_LINES])),) if errors else (),
            help="report this with the kernel: the text is Argus's own; ziglang 0.17.0 is the compiler known to work",
            kernel=stem,
        )
    )


def _unwritable(directory: Path, error: OSError, stem: str) -> ArgusError:
    reason = error.strerror or str(error)
    return ArgusError(
        Diagnostic(
            "E302",
            "error",
            f"cannot write the output of `{stem}` to {directory}: {reason}",
            help="name another directory, or make room and allow writing there",
            kernel=stem,
        )
    )
