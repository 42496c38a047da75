"""What each point of a space is: its verdict, what it costs to build, what it takes of the machine, why it is left out.

A point that is not proved goes no further; one that is proved and spills is told, and left out too.
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
"""Wall clock for a question to a solver, and for the search of a failing run."""
_REGISTERS, _GRAIN = 65_536, 8
_SHARED, _RESERVED = 233_472, 1_024
_THREADS, _BLOCKS, _WARP = 2_048, 32, 32


@frozen
class Row:
    """verdict: "refused" for a point that is no program. why: what leaves it out; its code is `code`, such as I22.

    proof, compiled: seconds. registers: of a thread. spills: bytes a thread. shared: bytes a block. occupancy: blocks
    of a multiprocessor at once on sm_90a, waves of a SIMD on gfx942. serialised: the assembler's remark that products
    wait for one another. size: bytes of code. beside: as of `ResourceReport`.
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
    """A point by its name: traced, proved, compiled into the folder. No diagnostic is raised.

    Its code and description go to NAME.cubin or NAME.hsaco, and NAME.json, if it is ready.
    """
    assert folder is not None
    config = configuration(name)
    if config is None:
        return Row(name, "left out", "refused", "it is no name of a configuration")
    start = time.perf_counter()
    try:
        kernel = gemm.instance(config, name)
        report = verify(kernel, budget=Budget.about(_SECONDS))
    except ArgusError as problem:
        told = problem.diagnostic
        return Row(name, "left out", "refused", _line(told), told.code, time.perf_counter() - start)
    found = Row(
        name, "left out", verdict_word(report.verdict), proof=time.perf_counter() - start, threads=kernel.threads
    )
    if found.verdict != "proved":
        told = next(iter(report.diagnostics), None)
        return found if told is None else evolve(found, why=_line(told), code=told.code)
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
        case AssemblerReport(registers=registers) as told:
            shared = made.launch.shared_bytes
            return evolve(
                found,
                registers=registers,
                spills=told.spill_stores + told.spill_loads,
                shared=shared,
                occupancy=blocks_at_once(registers, found.threads, shared),
                serialised=told.serialised,
            )
        case ResourceReport() as told:
            spills = 4 * told.vgpr_spills + told.scratch_bytes
            return evolve(
                found,
                registers=told.registers,
                spills=spills,
                shared=told.lds_bytes,
                occupancy=told.occupancy,
                beside=told.beside,
            )


def blocks_at_once(registers: int, threads: int, shared: int) -> int:
    """Blocks that a multiprocessor of an H100 or H200 has room for [CUDA programming guide, compute capability 9.0]."""
    warps = -(-threads // _WARP)
    by_registers = _REGISTERS // (-(-registers // _GRAIN) * _GRAIN * _WARP * warps)
    return min(by_registers, _SHARED // (shared + _RESERVED), _THREADS // (warps * _WARP), _BLOCKS)


def _line(told: Diagnostic) -> str:
    return told.message.splitlines()[0]
