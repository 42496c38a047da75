"""`build`: emit a kernel, compile it, and read its resource usage."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import platformdirs
from attrs import frozen

from argus.core.cost import Compiled
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Copy, Kernel, Stmt, walk
from argus.core.target import TARGETS, Target
from argus.emit.artifact import Artifact, artifact_json, cuda_launch, launch_info, spill_warnings
from argus.emit.cuda.code_warnings import cuda_warnings
from argus.emit.cuda.machine_code import MachineCode, machine_code
from argus.emit.cuda.nvdisasm import disassemble, disassembler
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.ptxas import parse_report as parse_assembler_report
from argus.emit.cuda.sass import named, parse
from argus.emit.cuda.text import CudaText, cuda_text
from argus.emit.emitted_lines import statements_of_lines
from argus.emit.guards import guards
from argus.emit.hip.code_intervals import CodeIntervals, code_intervals, moved_warnings, numbers_of_lines
from argus.emit.hip.resource_report import ResourceReport, parse_report
from argus.emit.hip.taken import taken
from argus.emit.hip.text import compiled_texts, hip_statements
from argus.emit.hip.toolchain import Compiled as CompiledHip
from argus.emit.hip.toolchain import compile_hip, write_files
from argus.emit.names import assign_names, file_stem
from argus.emit.resources import compiled_from_report

COMPILE_SECONDS = 120.0


def build(
    kernel: Kernel,
    target: Target | str | None = None,
    directory: Path | None = None,
    *,
    lines: bool = True,
    read_code: bool = False,
) -> Artifact:
    """Emit a kernel, compile it and read the compiler's report.

    target: the machine, or its name; the kernel's own by default. directory: where NAME.hip, NAME.s, NAME.hsaco
    and NAME.json go (NAME.cu, NAME.cubin and NAME.json for sm_90a); by default a folder of the user's cache, named
    after the text's digest. lines: whether sm_90a code carries line information for profilers. read_code: whether to
    read what became of the schedule: from sm_90a code with lines, if the disassembler is installed, and from the
    assembly of gfx942, which then has lines.

    Raises:
        ArgusError: E301 for a target that is unknown or not the kernel's, E302 if the output cannot be written,
            E303 without a compiler, E304 if it fails, E307 if it warns, E501 for a construct that is not emitted yet.
    """
    _check_target(kernel, target)
    if kernel.target.name == "sm_90a":
        return _build_cuda(kernel, directory, lines=lines, read_code=read_code and lines)
    found = _compiled_hip(kernel, directory, read_code=read_code)
    made, report, read = found.made, found.report, found.read
    stem, place = file_stem(kernel), made.code.parent
    stored = frozenset(s.target.buffer.name for s in walk(kernel.body) if isinstance(s, Copy))
    names = assign_names(kernel)
    launch = launch_info(kernel, names.kernel, stored, guards(kernel, names))
    data = json.dumps(artifact_json(kernel.name, kernel.target.name, report, launch), indent=2) + "\n"
    (description,) = write_files({f"{stem}.json": data}, place, stem)
    return Artifact(
        kernel.name,
        kernel.target.name,
        found.text,
        made.source,
        made.assembly,
        made.code,
        description,
        report,
        launch,
        (*spill_warnings(kernel, report), *(() if read is None else moved_warnings(kernel, read))),
        code_intervals=read,
    )


@frozen
class _BuiltHip:
    text: str
    made: CompiledHip
    report: ResourceReport
    read: CodeIntervals | None


def _compiled_hip(kernel: Kernel, directory: Path | None, *, read_code: bool) -> _BuiltHip:
    """The first text without registers that spill, or that with the fewest; its files and its resources."""
    texts = compiled_texts(kernel)
    stem = file_stem(kernel)
    place = _cache_directory(stem, texts[0]) if directory is None else directory
    last: list[str] = []

    def compiled(text: str) -> _BuiltHip:
        statements = hip_statements(kernel, text) if read_code else ()
        numbers = numbers_of_lines(statements)
        made = compile_hip(text, stem, place, COMPILE_SECONDS, lines=read_code, numbers=numbers)
        symbol = assign_names(kernel).kernel
        read = code_intervals(kernel, made.assembly_text, symbol, statements) if read_code else None
        last[:] = [text]
        return _BuiltHip(text, made, parse_report(made.remarks, made.assembly_text), read)

    text, best = taken(kernel, texts, compiled, lambda each: each.report.scratch_bytes, COMPILE_SECONDS)
    return best if last == [text] else compiled(text)


def compile_resources(kernel: Kernel) -> Compiled:
    """Compile a kernel for its resource usage, the cost model's input; keeps no file. Raises like `build`."""
    with tempfile.TemporaryDirectory() as folder:
        return compiled_from_report(build(kernel, directory=Path(folder), lines=False).report)


def _build_cuda(kernel: Kernel, directory: Path | None, *, lines: bool, read_code: bool) -> Artifact:
    """`build` for sm_90a: writes NAME.cu, NAME.cubin and NAME.json."""
    made = cuda_text(kernel)
    code = compile_cuda(made.text, made.symbol, lines=lines)
    report = parse_assembler_report(code.log, made.symbol)
    launch = cuda_launch(kernel, made.symbol, made.plan, made.guards)
    data = json.dumps(artifact_json(kernel.name, kernel.target.name, report, launch), indent=2) + "\n"
    stem = file_stem(kernel)
    place = _cache_directory(stem, made.text) if directory is None else directory
    files: dict[str, str | bytes] = {f"{stem}.cu": made.text, f"{stem}.cubin": code.cubin, f"{stem}.json": data}
    source, binary, description = write_files(files, place, stem)
    read = _machine_code(kernel, made, code.cubin) if read_code and disassembler() is not None else None
    return Artifact(
        name=kernel.name,
        target=kernel.target.name,
        source_text=made.text,
        source=source,
        assembly=None,
        code=binary,
        description=description,
        report=report,
        launch=launch,
        warnings=cuda_warnings(kernel, report, read),
        machine_code=read,
    )


def _machine_code(kernel: Kernel, made: CudaText, cubin: bytes) -> MachineCode:
    """Read machine code that was compiled with line information. Raises ArgusError (E304)."""
    function = named(parse(disassemble(cubin, kernel.name)), made.symbol)
    return machine_code(function, cuda_statements(kernel), kernel.body)


def cuda_statements(kernel: Kernel) -> tuple[Stmt | None, ...]:
    """The innermost statement that emitted each line of `cuda_text(kernel).text`; None for lines of no statement."""
    return statements_of_lines(kernel, lambda mark: cuda_text(kernel, mark).text)


def _check_target(kernel: Kernel, target: Target | str | None) -> None:
    wanted = kernel.target.name if target is None else str(target)
    if wanted == kernel.target.name:
        return
    known = ", ".join(f"`{each}`" for each in TARGETS)
    if wanted in {each.name for each in TARGETS}:
        message = f"`{kernel.name}` is written for `{kernel.target}`, not for `{wanted}`"
    else:
        message = f"unknown target `{wanted}`: expected one of {known}"
    repair = f"build it for `{kernel.target}`"
    raise ArgusError(Diagnostic("E301", "error", message, help=repair, kernel=kernel.name))


def _cache_directory(stem: str, text: str) -> Path:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return platformdirs.user_cache_path("argus") / "build" / f"{stem}-{digest}"
