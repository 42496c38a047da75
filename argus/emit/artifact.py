"""A built kernel: the text, what it was compiled to, and what a launch must know and check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import asdict, frozen

from argus.core import algebra
from argus.core.diagnostic import Diagnostic, Label
from argus.core.dtype import DTYPES
from argus.core.index import Symbol
from argus.core.ir import Assume, Copy, Kernel, Strided, walk
from argus.core.walk import show
from argus.emit.address import extent_of
from argus.emit.cuda.guards import Guard
from argus.emit.cuda.plan import Plan, TensorMap, begins_early
from argus.emit.cuda.ptxas import SERIALISED, AssemblerReport
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.scope import descriptors

SCHEMA = "argus.artifact/1"
_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}
# A buffer offset counts 32-bit bytes, and the last 16 stand for "outside".
DESCRIPTOR_BYTES = 0xFFFF_FFF0
# Coordinates are 32-bit integers; a tile may reach beyond its tensor, which this leaves room for.
LARGEST_SIZE = 1 << 30


@frozen
class Argument:
    """One argument, in order. kind: "pointer" to elements of `dtype`, or "int" (32 bits, the size of that name)."""

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[str, ...] = ()
    written: bool = False
    align: int = 0


@frozen
class TensorMapArgument:
    """What the copy engine must know of a tensor: the maps are the kernel's first arguments, in order.

    shape and strides: Python expressions over the sizes, in elements. box: extents, rows and columns the last two.
    swizzle: bytes, 0 for none. free: whether the tensor is read by maps alone: what it holds is then all that counts,
    and it may lie with other strides, which the map is told.
    """

    name: str
    tensor: str
    dtype: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    box: tuple[int, ...]
    swizzle: int
    free: bool = False


@frozen
class Check:
    """A condition over the sizes that a launch must meet, as a Python expression, and why."""

    condition: str
    why: str


@frozen
class Contract:
    """What a launch must look at in a tensor of integers: a condition on every element, as a Python expression over the
    sizes, the element's coordinates `i0`, `i1`, ..., and elements of the tensor. guard: the entry point of the kernel
    that looks at them on the device, empty where there is none.
    """

    tensor: str
    shape: tuple[str, ...]
    condition: str
    guard: str = ""


@frozen
class LaunchInfo:
    """grid: Python expressions over the sizes, one an axis, x first. threads: of one block.

    maps: arguments before all others. shared_bytes: shared memory that the launch asks for. early: whether it may begin
    before what is ahead of it in its stream has ended, as it waits for that itself.
    """

    symbol: str
    grid: tuple[str, ...]
    threads: int
    arguments: tuple[Argument, ...]
    checks: tuple[Check, ...]
    maps: tuple[TensorMapArgument, ...] = ()
    shared_bytes: int = 0
    contracts: tuple[Contract, ...] = ()
    early: bool = False


@frozen
class Artifact:
    """A compiled kernel. warnings: what is likely not wanted, such as spilled registers (E305).

    assembly: None where the compiler writes none.
    """

    name: str
    target: str
    source_text: str
    source: Path
    assembly: Path | None
    code: Path
    description: Path
    report: ResourceReport | AssemblerReport
    launch: LaunchInfo
    warnings: tuple[Diagnostic, ...] = ()


def launch_info(kernel: Kernel, symbol: str, written: frozenset[str]) -> LaunchInfo:
    """How to launch a kernel that is compiled under `symbol`; written: names of the tensors it stores to."""
    tensors = [
        Argument(b.name, "pointer", b.dtype.name, tuple(show(e) for e in b.shape), b.name in written, b.align)
        for b in kernel.parameters
    ]
    sizes = [Argument(size.name, "int") for size in kernel.sizes]
    grid = tuple(show(extent) for extent in kernel.grid)
    return LaunchInfo(symbol, grid, kernel.threads, (*tensors, *sizes), _checks(kernel), contracts=_contracts(kernel))


def _checks(kernel: Kernel) -> tuple[Check, ...]:
    stated = (s.cond for s in walk(kernel.body) if isinstance(s, Assume))
    assumed = [Check(show(cond), "assumed by the program") for cond in stated if cond is not algebra.TRUE]
    sizes = [_size_check(size) for size in kernel.sizes]
    ranged = [
        Check(
            f"{show(algebra.mul(extent_of(b), b.dtype.bits // 8))} <= {DESCRIPTOR_BYTES}",
            f"`{b.name}` is addressed by 32-bit byte offsets",
        )
        for b in descriptors(kernel)
    ]
    return tuple(dict.fromkeys([*assumed, *sizes, *ranged]))


def _contracts(kernel: Kernel, guards: Sequence[Guard] = ()) -> tuple[Contract, ...]:
    """What is promised of integers in memory, which a proof rests on as it does on assumptions."""
    symbols = {guard.buffer: guard.symbol for guard in guards}
    return tuple(
        Contract(
            buffer.name, tuple(show(extent) for extent in buffer.shape), show(buffer.promise), symbols.get(buffer, "")
        )
        for buffer in kernel.parameters
        if buffer.promise is not algebra.TRUE
    )


def _size_check(size: Symbol) -> Check:
    low = 0 if size.low is None else max(0, size.low)
    high = LARGEST_SIZE if size.high is None else min(LARGEST_SIZE, size.high)
    return Check(f"{low} <= {size.name} <= {high}", "coordinates are 32-bit integers")


def spill_warnings(kernel: Kernel, report: ResourceReport) -> tuple[Diagnostic, ...]:
    """E305 if registers of the kernel live in memory."""
    if not report.spills:
        return ()
    return (
        Diagnostic(
            "E305",
            "warning",
            f"registers of `{kernel.name}` are kept in memory: {report.vgpr_spills} spilled, "
            f"{report.scratch_bytes} bytes a lane, expected none",
            primary=Label(kernel.span, "the compiled kernel spills"),
            facts=(("registers", f"{report.vgprs} vector, {report.agprs} accumulation"),),
            help="hold smaller tiles a thread, or launch fewer threads a block so that each may hold more registers",
            kernel=kernel.name,
        ),
    )


def described(
    artifact_name: str, target: str, report: ResourceReport | AssemblerReport, launch: LaunchInfo
) -> dict[str, object]:
    """The JSON data of NAME.json, schema `argus.artifact/1`: no path in it, so that it may be moved."""
    data = asdict(launch)
    if not launch.contracts:
        del data["contracts"]
    return {
        "schema": SCHEMA,
        "kernel": artifact_name,
        "target": target,
        "launch": data,
        "report": report_data(report),
    }


def report_data(report: ResourceReport | AssemblerReport) -> dict[str, object]:
    """A report as JSON data."""
    if isinstance(report, ResourceReport):
        return {**asdict(report), "instructions": dict(report.instructions)}
    return asdict(report)


# -- CUDA ----------------------------------------------------------------------------------------------------


def cuda_launch(kernel: Kernel, symbol: str, plan: Plan, guards: Sequence[Guard] = ()) -> LaunchInfo:
    """How to launch a CUDA kernel: tensor maps, then pointers, then sizes."""
    written = {stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    tensors = tuple(
        Argument(b.name, "pointer", b.dtype.name, tuple(show(e) for e in b.shape), b in written, b.align)
        for b in plan.pointers
    )
    sizes = tuple(Argument(size.name, "int") for size in kernel.sizes)
    grid = tuple(show(extent) for extent in kernel.grid)
    touched = {*written, *plan.pointers}
    maps = tuple(_map_argument(each, free=each.buffer not in touched) for each in plan.maps.values())
    checks = [*_checks(kernel), *(check for each in maps for check in _map_checks(each))]
    found = tuple(dict.fromkeys(checks))
    arguments = (*tensors, *sizes)
    contracts = _contracts(kernel, guards)
    early = begins_early(kernel)
    return LaunchInfo(symbol, grid, kernel.threads, arguments, found, maps, plan.bytes, contracts, early=early)


def _map_argument(made: TensorMap, *, free: bool) -> TensorMapArgument:
    buffer = made.buffer
    assert isinstance(buffer.layout, Strided)
    shape, strides = tuple(map(show, buffer.shape)), tuple(map(show, buffer.layout.strides))
    return TensorMapArgument(made.name, buffer.name, buffer.dtype.name, shape, strides, made.box, made.swizzle, free)


def _map_checks(made: TensorMapArgument) -> list[Check]:
    """A row of a tensor begins at a multiple of 16 bytes."""
    size = _BYTES[made.dtype]
    why = f"the copy engine takes rows of `{made.tensor}` at multiples of 16 bytes"
    return [Check(f"({stride}) * {size} % 16 == 0", why) for stride in made.strides[:-1]]


def cuda_warnings(kernel: Kernel, report: AssemblerReport) -> tuple[Diagnostic, ...]:
    """E305 for spilled registers, E306 for matrix instructions that wait for one another."""
    found: list[Diagnostic] = []
    if report.spills:
        message = (
            f"registers of `{kernel.name}` are kept in memory: {report.spill_stores} bytes stored, "
            f"{report.spill_loads} bytes loaded, expected none"
        )
        repair = "hold smaller tiles a thread, or give the role more registers"
        found.append(_warning(kernel, "E305", message, "the compiled kernel spills", repair))
    for code, text in report.warnings:
        if code in SERIALISED:
            message = f"matrix instructions of `{kernel.name}` wait for one another: {text}"
            repair = "touch the accumulator only after `wgmma.wait(0)`"
            found.append(_warning(kernel, "E306", message, "the assembler serialises it", repair))
    return tuple(found)


def _warning(kernel: Kernel, code: str, message: str, label: str, repair: str) -> Diagnostic:
    return Diagnostic(code, "warning", message, Label(kernel.span, label), help=repair, kernel=kernel.name)
