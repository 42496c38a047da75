"""Compiles a kernel's text for gfx942 and executes the machine code on arrays."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.ir import Kernel
from argus.emit.artifact import LaunchInfo
from argus.emit.build import COMPILE_SECONDS
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import file_stem
from argus.interp.gfx942.code_object import CodeObject, read_code_object
from argus.interp.gfx942.findings import Finding as MachineFinding
from argus.interp.gfx942.launch import LIMIT, Executed, Tensor, execute
from argus.interp.gfx942.line_table import LineTable, line_table
from argus.interp.memory.loading import inputs, outputs
from argus.runtime.cpu.launch import Finding, laid_out, strides_of, view_of
from argus.runtime.expressions import value_of

Array = npt.NDArray[Any]
_SOURCE = re.compile(r"\s*// (\S+:\d+)$")


@frozen
class MachineCode:
    """A compiled text. lines: its line table; sources: of each of the text's lines, FILE:LINE of the user's program."""

    code: CodeObject
    info: LaunchInfo
    lines: LineTable
    sources: tuple[str, ...]

    def finding(self, found: MachineFinding) -> Finding:
        """With the lines that an instruction comes from."""
        line, source = self.lines.line_of(found.address), self.source_of(found.address)
        program = f", {source}" if source else ""
        what = f"`{found.instruction}` at 0x{found.address:x}{program}: {found.what}"
        return Finding(found.kind, what, line, str(found.where))

    def source_of(self, address: int) -> str:
        """FILE:LINE of the user's program that an instruction comes from; empty if it is not known."""
        line = self.lines.line_of(address)
        return self.sources[line - 1] if 0 < line <= len(self.sources) else ""


def compiled(kernel: Kernel, text: str, info: LaunchInfo) -> MachineCode:
    """Compile a text with its line table. Raises ArgusError as the compiler does (E302, E303, E304, E307)."""
    with tempfile.TemporaryDirectory() as folder:
        made = compile_hip(text, file_stem(kernel), Path(folder), COMPILE_SECONDS, lines=True)
        code = read_code_object(made.code.read_bytes())
    return MachineCode(code, info, line_table(code), tuple(_sources(text)))


def of_file(file: Path, info: LaunchInfo) -> MachineCode:
    """What a build has compiled, without lines of the program."""
    code = read_code_object(file.read_bytes())
    return MachineCode(code, info, line_table(code), ())


def _sources(text: str) -> list[str]:
    """The user's line of each line of a text: that of the last comment above it."""
    found: list[str] = []
    last = ""
    for line in text.splitlines():
        named = _SOURCE.match(line)
        last = named.group(1) if named else last
        found.append(last)
    return found


def run_code(
    made: MachineCode,
    kernel: Kernel,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array],
    seed: int,
    *,
    limit: int = LIMIT,
) -> tuple[dict[str, Array], Executed]:
    """Launch a kernel; returns its outputs, and all else. limit: of instructions of one wave.

    Elements of outputs that no launch writes are NaN, as they are in the interpreter.

    Raises ArgusError (E420, E502).
    """
    tensors = laid_out(kernel, sizes, arrays, frozenset())
    known = {buffer.name for buffer in inputs(kernel)}
    for name, tensor in tensors.items():
        if name not in known and tensor.held.dtype.kind not in "iu":
            tensor.held[...] = np.nan
    arguments = [
        sizes[each.name] if each.kind == "int" else Tensor(each.name, tensors[each.name].held, each.written)
        for each in made.info.arguments
    ]
    grid = [value_of(extent, sizes) for extent in made.info.grid]
    done = execute(made.code, made.info.symbol, grid, made.info.threads, arguments, seed=seed, limit=limit)
    found = {
        buffer.name: np.array(
            view_of(done.tensors[buffer.name], arrays[buffer.name].shape, strides_of(kernel, buffer.name, sizes))
        )
        for buffer in outputs(kernel)
    }
    return found, done
