"""Tabulates the points of a search space: verdict, build time, resource usage, and why a point is left out.

Points that are not proved are not compiled; points that spill registers are recorded and left out.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.hip.resource_report import ResourceReport
from argus.kernels.gemm import configuration, gemm
from argus.report.summary import verdict_word
from argus.verifier.kernel import verify

State = Literal["ready", "left out"]
_SECONDS = 3.0
"""Wall-clock budget of a solver query, and of the search for a counterexample."""
_REGISTERS, _GRAIN = 65_536, 8
_SHARED, _RESERVED = 233_472, 1_024
_THREADS, _BLOCKS, _WARP = 2_048, 32, 32


@frozen
class Row:
    """One point. verdict: "refused" if it does not trace. why, code: reason for leaving it out and its code, e.g. I22.

    proof, compiled: seconds. registers: per thread. spills: bytes per thread. shared: bytes per block. occupancy:
    resident blocks per SM on sm_90a, waves per SIMD on gfx942. serialised: whether ptxas reports serialised wgmma.
    size: bytes of code. beside: as in `ResourceReport`.
    """

    name: str
    state: State
    verdict: str
    why: str = ""
    code: str = ""
    proof: float = 0.0
    compiled: float = 0.0
    registers: int = 0
    spills: int = 0
    shared: int = 0
    threads: int = 0
    occupancy: int = 0
    serialised: bool = False
    size: int = 0
    beside: float = 0.0


def row(name: str, folder: Path | None = None) -> Row:
    """Trace, prove and compile a point by name. Diagnostics become the reason of a left-out row.

    Writes the code of a ready point to NAME.cubin or NAME.hsaco in the folder, and its description to NAME.json.
    """
    assert folder is not None
    config = configuration(name)
    if config is None:
        return Row(name, "left out", "refused", "it is not the name of a configuration")
    start = time.perf_counter()
    try:
        kernel = gemm.instance(config, name)
        report = verify(kernel, budget=Budget.about(_SECONDS))
    except ArgusError as problem:
        diagnostic = problem.diagnostic
        return Row(name, "left out", "refused", _line(diagnostic), diagnostic.code, time.perf_counter() - start)
    found = Row(
        name, "left out", verdict_word(report.verdict), proof=time.perf_counter() - start, threads=kernel.threads
    )
    if found.verdict != "proved":
        diagnostic = next(iter(report.diagnostics), None)
        return found if diagnostic is None else evolve(found, why=_line(diagnostic), code=diagnostic.code)
    return _built(kernel, found, folder)


def _built(kernel: Kernel, found: Row, folder: Path) -> Row:
    start, scratch = time.perf_counter(), folder / ".making" / found.name
    try:
        made = build(kernel, directory=scratch, lines=False)
    except ArgusError as problem:
        shutil.rmtree(scratch, ignore_errors=True)
        return evolve(found, why=_line(problem.diagnostic), code=problem.diagnostic.code)
    found = _with_resources(evolve(found, compiled=time.perf_counter() - start), made)
    if not found.spills:
        found = evolve(found, state="ready", size=made.code.stat().st_size)
        for path in (made.code, made.description):
            shutil.move(path, folder / f"{found.name}{path.suffix}")
    shutil.rmtree(scratch, ignore_errors=True)
    return found if not found.spills else evolve(found, why="registers are kept in memory", code="E305")


def _with_resources(found: Row, made: Artifact) -> Row:
    match made.report:
        case AssemblerReport(registers=registers) as diagnostic:
            shared = made.launch.shared_bytes
            return evolve(
                found,
                registers=registers,
                spills=diagnostic.spill_stores + diagnostic.spill_loads,
                shared=shared,
                occupancy=blocks_at_once(registers, found.threads, shared),
                serialised=diagnostic.serialised,
            )
        case ResourceReport() as diagnostic:
            spills = 4 * diagnostic.vgpr_spills + diagnostic.scratch_bytes
            return evolve(
                found,
                registers=diagnostic.registers,
                spills=spills,
                shared=diagnostic.lds_bytes,
                occupancy=diagnostic.occupancy,
                beside=diagnostic.beside,
            )


def blocks_at_once(registers: int, threads: int, shared: int) -> int:
    """Resident blocks per SM of an H100 or H200 [CUDA programming guide, compute capability 9.0]."""
    warps = -(-threads // _WARP)
    by_registers = _REGISTERS // (-(-registers // _GRAIN) * _GRAIN * _WARP * warps)
    return min(by_registers, _SHARED // (shared + _RESERVED), _THREADS // (warps * _WARP), _BLOCKS)


def _line(diagnostic: Diagnostic) -> str:
    return diagnostic.message.splitlines()[0]
