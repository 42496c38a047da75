"""`build`: emit a kernel, compile it, and read its resource usage."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import platformdirs

from argus.core.cost import Compiled
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Copy, Kernel, walk
from argus.core.target import TARGETS, Target
from argus.emit.artifact import Artifact, artifact_json, cuda_launch, launch_info, spill_warnings
from argus.emit.cuda.code_warnings import cuda_warnings
from argus.emit.cuda.emitted_lines import statements_of_lines
from argus.emit.cuda.machine_code import MachineCode, machine_code
from argus.emit.cuda.nvdisasm import disassemble, disassembler
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.ptxas import parse_report as parse_assembler_report
from argus.emit.cuda.sass import named, parse
from argus.emit.cuda.text import CudaText, cuda_text
from argus.emit.guards import guards
from argus.emit.hip.resource_report import ResourceReport, parse_report
from argus.emit.hip.text import hip_texts
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
    read what became of the schedule from sm_90a code with lines, if the disassembler is installed.

    Raises:
        ArgusError: E301 for a target that is unknown or not the kernel's, E302 if the output cannot be written,
            E303 without a compiler, E304 if it fails, E307 if it warns, E501 for a construct that is not emitted yet.
    """
    _check_target(kernel, target)
    if kernel.target.name == "sm_90a":
        return _build_cuda(kernel, directory, lines=lines, read_code=read_code and lines)
    text, made, report = _compiled_hip(kernel, directory)
    stem, place = file_stem(kernel), made.code.parent
    stored = frozenset(s.target.buffer.name for s in walk(kernel.body) if isinstance(s, Copy))
    names = assign_names(kernel)
    launch = launch_info(kernel, names.kernel, stored, guards(kernel, names))
    data = json.dumps(artifact_json(kernel.name, kernel.target.name, report, launch), indent=2) + "\n"
    (description,) = write_files({f"{stem}.json": data}, place, stem)
    return Artifact(
        kernel.name,
        kernel.target.name,
        text,
        made.source,
        made.assembly,
        made.code,
        description,
        report,
        launch,
        spill_warnings(kernel, report),
    )


def _compiled_hip(kernel: Kernel, directory: Path | None) -> tuple[str, CompiledHip, ResourceReport]:
    """The text, its files and its resources; with addresses computed anew in loops if fewer registers spill so."""
    preferred, *others = hip_texts(kernel)
    stem = file_stem(kernel)
    place = _cache_directory(stem, preferred) if directory is None else directory

    def compiled(text: str) -> tuple[str, CompiledHip, ResourceReport]:
        made = compile_hip(text, stem, place, COMPILE_SECONDS)
        return text, made, parse_report(made.remarks, made.assembly_text)

    best = compiled(preferred)
    for text in others if best[2].spills else ():
        other = compiled(text)
        best = other if other[2].scratch_bytes < best[2].scratch_bytes else compiled(preferred)
    return best


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
    return machine_code(function, statements_of_lines(kernel), kernel.body)


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
