"""Warnings about compiled sm_90a code: E305, E306, E308 and E309, from ptxas's report and from the machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Kernel
from argus.emit.cuda.machine_code import Call, MachineCode, Overlap, Spill
from argus.emit.cuda.ptxas import SERIALISED, AssemblerReport

_LEAST_WORK = 16
"""Fewer instructions than that hide nothing of a product, wherever they stand."""
_SHOWN = 4
"""Further locations of one finding."""


def cuda_warnings(kernel: Kernel, report: AssemblerReport, code: MachineCode | None = None) -> tuple[Diagnostic, ...]:
    """What the compiler broke, by lines of the program where the machine code was read."""
    found = [*_spills(kernel, report, code), *_serialised(kernel, report, code)]
    if code is not None:
        found += [_hoisted(kernel, each) for each in code.overlaps if is_broken(each)]
        found += [_called(kernel, each) for each in code.calls]
    return tuple(found)


def is_broken(overlap: Overlap) -> bool:
    """Whether most of what the program overlaps with products, exponentials if any, comes after the wait for them."""
    every, ahead = overlap.arithmetic, overlap.arithmetic_ahead
    if overlap.exponentials:
        every, ahead = overlap.exponentials, overlap.exponentials_ahead
    return every >= _LEAST_WORK and 2 * ahead < every


def _spills(kernel: Kernel, report: AssemblerReport, code: MachineCode | None) -> Iterator[Diagnostic]:
    places = () if code is None else code.spills
    if not (report.spills or places):
        return
    yield _warning(
        kernel,
        "E305",
        f"`{kernel.name}` spills registers: {report.spill_stores} bytes of spill stores, "
        f"{report.spill_loads} bytes of spill loads per thread, expected none",
        [Label(each.at, _accesses(each)) for each in places] or [Label(kernel.span, "the compiled kernel spills")],
        "use smaller tiles, or give the role more registers",
    )


def _accesses(spill: Spill) -> str:
    return f"{spill.stores} bytes stored and {spill.loads} bytes loaded here{_inside(spill.depth)}"


def _inside(depth: int) -> str:
    return {0: "", 1: ", in a loop"}.get(depth, f", in {depth} nested loops")


def _serialised(kernel: Kernel, report: AssemblerReport, code: MachineCode | None) -> Iterator[Diagnostic]:
    """For each remark of the assembler, or else for waits that it adds without one."""
    labels = [Label(each, "the compiler waits near this") for each in (() if code is None else code.added_waits)]
    remarks = [text for number, text in report.warnings if number in SERIALISED]
    messages = [f"the assembler serialises the wgmma instructions of `{kernel.name}`: {text}" for text in remarks]
    if labels and not messages:
        messages = [f"the assembler adds {len(labels)} waits for wgmma instructions to `{kernel.name}`, expected none"]
    for message in messages:
        repair = "access the accumulator only after `wgmma.wait(0)`"
        yield _warning(kernel, "E306", message, labels or [Label(kernel.span, "serialised here")], repair)


def _hoisted(kernel: Kernel, overlap: Overlap) -> Diagnostic:
    """A note: where other warpgroups multiply meanwhile, the compiler's order may be the faster one."""
    counts = f"{overlap.arithmetic_ahead} of {overlap.arithmetic} floating-point instructions"
    if overlap.exponentials:
        counts = f"{overlap.exponentials_ahead} of {overlap.exponentials} exponentials and {counts}"
    return _warning(
        kernel,
        "E308",
        f"`{kernel.name}` waits for products before it computes what overlaps with them: {counts} precede the wait "
        f"in the machine code, expected most of them",
        [Label(overlap.wait, "the compiler waits earlier than this")],
        "put a barrier of the warpgroup, `sync()`, ahead of the wait, and measure both",
        note=True,
    )


def _called(kernel: Kernel, call: Call) -> Diagnostic:
    """A note if only unusual operands take the call."""
    rare = call.routine.endswith("slowpath")
    taken = "for operands that are subnormal, infinite or near the limits" if rare else "each time"
    return _warning(
        kernel,
        "E309",
        f"`{kernel.name}` calls the subroutine `{call.routine}`, {taken}: {call.calls} calls, expected none",
        [Label(call.at, f"{call.calls} calls here{_inside(call.depth)}")],
        "divide once for each row and multiply by the quotient, or divide outside of the loop",
        note=rare,
    )


def _warning(
    kernel: Kernel, code: str, message: str, labels: Sequence[Label], repair: str, *, note: bool = False
) -> Diagnostic:
    first, *others = labels
    severity = "note" if note else "warning"
    return Diagnostic(code, severity, message, first, tuple(others[:_SHOWN]), help=repair, kernel=kernel.name)
