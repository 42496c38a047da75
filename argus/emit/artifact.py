"""A built kernel: the text, what it was compiled to, and what a launch must know and check."""

from __future__ import annotations

from pathlib import Path

from attrs import asdict, frozen

from argus.core import algebra
from argus.core.diagnostic import Diagnostic, Label
from argus.core.index import Symbol
from argus.core.ir import Assume, Kernel, walk
from argus.core.walk import show
from argus.emit.address import extent_of
from argus.emit.report import ResourceReport
from argus.emit.scope import descriptors

SCHEMA = "argus.artifact/1"
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
class Check:
    """A condition over the sizes that a launch must meet, as a Python expression, and why."""

    condition: str
    why: str


@frozen
class LaunchInfo:
    """grid: Python expressions over the sizes, one an axis, x first. threads: of one block."""

    symbol: str
    grid: tuple[str, ...]
    threads: int
    arguments: tuple[Argument, ...]
    checks: tuple[Check, ...]


@frozen
class Artifact:
    """A compiled kernel. warnings: what is likely not wanted, such as spilled registers (E305)."""

    name: str
    target: str
    source_text: str
    source: Path
    assembly: Path
    code: Path
    description: Path
    report: ResourceReport
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
    return LaunchInfo(symbol, grid, kernel.threads, (*tensors, *sizes), _checks(kernel))


def _checks(kernel: Kernel) -> tuple[Check, ...]:
    assumed = [Check(show(s.cond), "assumed by the program") for s in walk(kernel.body) if isinstance(s, Assume)]
    sizes = [_size_check(size) for size in kernel.sizes]
    ranged = [
        Check(
            f"{show(algebra.mul(extent_of(b), b.dtype.bits // 8))} <= {DESCRIPTOR_BYTES}",
            f"`{b.name}` is addressed by 32-bit byte offsets",
        )
        for b in descriptors(kernel)
    ]
    return tuple(dict.fromkeys([*assumed, *sizes, *ranged]))


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


def described(artifact_name: str, target: str, report: ResourceReport, launch: LaunchInfo) -> dict[str, object]:
    """The JSON data of NAME.json, schema `argus.artifact/1`: no path in it, so that it may be moved."""
    return {
        "schema": SCHEMA,
        "kernel": artifact_name,
        "target": target,
        "launch": asdict(launch),
        "report": asdict(report) | {"instructions": dict(report.instructions)},
    }
