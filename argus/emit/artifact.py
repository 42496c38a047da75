"""A built kernel: source text, compiled files, and the launch description with its checks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import asdict, frozen

from argus.core import algebra
from argus.core.diagnostic import Diagnostic, Label
from argus.core.dtype import DTYPES
from argus.core.index import Symbol
from argus.core.index_text import show
from argus.core.ir import Assume, Buffer, Copy, Kernel, Strided, walk
from argus.core.ir.view_ends import ENDED_ROWS
from argus.core.target import DESCRIPTOR_BYTES, LARGEST_SIZE
from argus.emit.address import span_in_elements
from argus.emit.cuda.machine_code import MachineCode
from argus.emit.cuda.plan import Plan, TensorMap, uses_pdl
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.guards import Guard, checked_symbol, common_symbol, others_read
from argus.emit.hip.code_intervals import CodeIntervals
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.scope import described_buffers

SCHEMA = "argus.artifact/1"
_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}


@frozen
class Argument:
    """One kernel argument, in order. kind: "pointer" to elements of `dtype`, or "int" (a 32-bit size of that name)."""

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[str, ...] = ()
    written: bool = False
    align: int = 0


@frozen
class TensorMapArgument:
    """A TMA descriptor (CUtensorMap) that the launch encodes. Maps are the kernel's first arguments, in order.

    shape and strides: Python expressions over the sizes, in elements. box: extents, rows and columns the last two.
    swizzle: span in bytes, 0 for none. free: whether the kernel reads the tensor through maps only, so that the launch
    may encode any strides in the map. ended: the map is that of `ended_map`, with more axes than the tensor.
    """

    name: str
    tensor: str
    dtype: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    box: tuple[int, ...]
    swizzle: int
    free: bool = False
    ended: bool = False


@frozen
class Check:
    """A condition on the sizes that a launch must check, as a Python expression, and its reason."""

    condition: str
    why: str


@frozen
class OtherTensor:
    """Another tensor of integers that a data contract reads."""

    tensor: str
    shape: tuple[str, ...]


@frozen
class Contract:
    """A data contract of an integer tensor that a launch must check: a condition on every element, as a Python
    expression over the sizes, the element's coordinates `i0`, `i1`, ..., and elements of the tensor and of others.
    guard: the entry point of the kernel that checks it on the device, empty if there is none. others: the other tensors
    whose elements it reads, with their shapes.
    """

    tensor: str
    shape: tuple[str, ...]
    condition: str
    guard: str = ""
    others: tuple[OtherTensor, ...] = ()


@frozen
class LaunchInfo:
    """How to launch a kernel. grid: Python expressions over the sizes, one per axis, x first. threads: block size.

    maps: TMA descriptors, ahead of all other arguments. shared_bytes: dynamic shared memory. early: whether the launch
    may use programmatic dependent launch (PDL): the kernel waits for its predecessor itself. guards: the entry point
    that checks all contracts on the device, empty if there are none or one. checked: the entry point of the kernel that
    checks them itself, empty if there is none; its further arguments are a report word for each, and whether to trap.
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
    guards: str = ""
    checked: str = ""


@frozen
class Artifact:
    """A compiled kernel. warnings: likely performance faults, such as register spills (E305).

    assembly: None if the compiler writes no assembly file. machine_code, code_intervals: what was read from the code of
    sm_90a and of gfx942, None if it was not.
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
    machine_code: MachineCode | None = None
    code_intervals: CodeIntervals | None = None

    def __repr__(self) -> str:
        """One line: the kernel, its target, warnings, and where its code is; `argus build` prints the rest."""
        warned = f", warnings {', '.join(each.code for each in self.warnings)}" if self.warnings else ""
        return f"<Artifact {self.name} ({self.target}): {self.code}{warned}>"


def launch_info(kernel: Kernel, symbol: str, written: frozenset[str], guards: Sequence[Guard] = ()) -> LaunchInfo:
    """How to launch the kernel compiled as `symbol`. written: names of the tensors it stores to."""
    tensors = [
        Argument(b.name, "pointer", b.dtype.name, tuple(show(e) for e in b.shape), b.name in written, b.align)
        for b in kernel.parameters
    ]
    sizes = [Argument(size.name, "int") for size in kernel.sizes]
    grid = tuple(show(extent) for extent in kernel.grid)
    contracts = _contracts(kernel, guards)
    whole = common_symbol(guards)
    return LaunchInfo(
        symbol, grid, kernel.threads, (*tensors, *sizes), _checks(kernel), contracts=contracts, guards=whole
    )


def _checks(kernel: Kernel) -> tuple[Check, ...]:
    stated = (s.cond for s in walk(kernel.body) if isinstance(s, Assume))
    assumed = [Check(show(cond), "assumed by the program") for cond in stated if cond is not algebra.TRUE]
    sizes = [_size_check(size) for size in kernel.sizes]
    ranged = [
        Check(
            f"{show(algebra.mul(span_in_elements(b), b.dtype.bits // 8))} <= {DESCRIPTOR_BYTES}",
            f"`{b.name}` is addressed by 32-bit byte offsets",
        )
        for b in described_buffers(kernel)
    ]
    return tuple(dict.fromkeys([*assumed, *sizes, *ranged]))


def _contracts(kernel: Kernel, guards: Sequence[Guard] = ()) -> tuple[Contract, ...]:
    """The data contracts of integer tensors: proofs assume them, so launches must check them."""
    symbols = {guard.buffer: guard.symbol for guard in guards}

    def shape(buffer: Buffer) -> tuple[str, ...]:
        return tuple(show(extent) for extent in buffer.shape)

    return tuple(
        Contract(
            buffer.name,
            shape(buffer),
            show(buffer.promise),
            symbols.get(buffer, ""),
            tuple(OtherTensor(other.name, shape(other)) for other in others_read(kernel, buffer)),
        )
        for buffer in kernel.parameters
        if buffer.promise is not algebra.TRUE
    )


def _size_check(size: Symbol) -> Check:
    low = 0 if size.low is None else max(0, size.low)
    high = LARGEST_SIZE if size.high is None else min(LARGEST_SIZE, size.high)
    return Check(f"{low} <= {size.name} <= {high}", "coordinates are 32-bit integers")


def spill_warnings(kernel: Kernel, report: ResourceReport) -> tuple[Diagnostic, ...]:
    """E305 if the kernel spills registers."""
    if not report.spills:
        return ()
    return (
        Diagnostic(
            "E305",
            "warning",
            f"`{kernel.name}` spills registers: {report.vgpr_spills} spilled, "
            f"{report.scratch_bytes} bytes of scratch per lane, expected none",
            primary=Label(kernel.span, "the compiled kernel spills"),
            facts=(("registers", f"{report.vgprs} vector, {report.agprs} accumulation"),),
            help="use smaller tiles, or launch fewer threads per block so that each may use more registers",
            kernel=kernel.name,
        ),
    )


def artifact_json(
    artifact_name: str, target: str, report: ResourceReport | AssemblerReport, launch: LaunchInfo
) -> dict[str, object]:
    """The JSON data of NAME.json, schema `argus.artifact/1`. It holds no path, so files may be moved."""
    data = asdict(launch)
    if not launch.contracts:
        del data["contracts"]
    if not launch.guards:
        del data["guards"]
    if not launch.checked:
        del data["checked"]
    for made in data["maps"]:
        if not made["ended"]:
            del made["ended"]
    for contract in data.get("contracts", ()):
        if not contract["others"]:
            del contract["others"]
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
    early = uses_pdl(kernel)
    whole, checked = common_symbol(guards), checked_symbol(kernel, guards)
    every = (symbol, grid, kernel.threads, arguments, found, maps, plan.bytes, contracts, early, whole, checked)
    return LaunchInfo(*every)


def _map_argument(made: TensorMap, *, free: bool) -> TensorMapArgument:
    buffer = made.buffer
    assert isinstance(buffer.layout, Strided)
    shape, strides = tuple(map(show, buffer.shape)), tuple(map(show, buffer.layout.strides))
    kind, ended = buffer.dtype.name, made.ended
    return TensorMapArgument(made.name, buffer.name, kind, shape, strides, made.box, made.swizzle, free, ended)


def ended_map(shape: Sequence[int], strides: Sequence[int], size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the tensor map whose boxes end at any row, as `ended_coordinates` says. size: bytes.

    2^30 steps of 2^34 bytes less a row are, modulo 2^64, 2^30 rows back: addresses of 64 bits wrap around. Nothing is
    read at the addresses between, since an element's coordinates are summed before it is.
    """
    apart = strides[-2]
    back = (1 << 34) // size - apart
    most = (1 << 31) - (1 << 16)
    return (*shape[:-2], most, most, ENDED_ROWS, shape[-1]), (*strides[:-2], back, apart, *strides[-2:])


def _map_checks(made: TensorMapArgument) -> list[Check]:
    """TMA needs every stride but the innermost to be a multiple of 16 bytes."""
    size = _BYTES[made.dtype]
    why = f"TMA needs the strides of `{made.tensor}` to be multiples of 16 bytes"
    return [Check(f"({stride}) * {size} % 16 == 0", why) for stride in made.strides[:-1]]
