"""Checks of programs: aliased arguments, workspaces read before they are written, assumptions that are false."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from argus.core.algebra import FALSE
from argus.core.check.formulas import formula_faults
from argus.core.check.reads import written_tensors
from argus.core.diagnostic import Diagnostic, Label
from argus.core.index_text import show
from argus.core.ir import Assume, Buffer, Launch, Program, program_claims, walk
from argus.core.walk import substitute


def check_program(program: Program) -> tuple[Diagnostic, ...]:
    """All errors of a program, launch by launch; its kernels must already be well-formed."""
    return tuple(_checks(program))


def _checks(program: Program) -> Iterator[Diagnostic]:
    if not program.launches:
        message = f"program `{program.name}` launches nothing"
        yield Diagnostic("E107", "error", message, Label(program.span, "declared here"), help="call a kernel in it")
    written: set[Buffer] = set()
    for launch in program.launches:
        yield from _aliased_arguments(program, launch)
        yield from _uninitialised_workspaces(program, launch, written)
        yield from _false_assumptions(program, launch)
        written |= _written_arguments(launch)
    yield from _claims(program, written)


def _claims(program: Program, written: Collection[Buffer]) -> Iterator[Diagnostic]:
    """Each formula is about a tensor that some launch writes, in terms of parameters that none writes."""
    known = {buffer.name: buffer for buffer in program.parameters}
    for stmt, claim in program_claims(program):
        if claim.view.buffer not in written:
            name = claim.view.buffer.name
            message = f"the program claims a formula of `{name}`, which no launch writes"
            label = Label(stmt.span, "claimed here")
            yield Diagnostic("E112", "error", message, label, help="claim it of an output", kernel=program.name)
        yield from formula_faults(program.name, stmt, claim, known, {buffer.name for buffer in written})


def _written_arguments(launch: Launch) -> frozenset[Buffer]:
    return frozenset(launch.arguments[buffer.name] for buffer in written_tensors(launch.kernel))


def _aliased_arguments(program: Program, launch: Launch) -> Iterator[Diagnostic]:
    """A tensor that the kernel writes is passed once: the proof of a kernel assumes that its tensors do not alias."""
    written = _written_arguments(launch)
    for buffer in dict.fromkeys(launch.arguments.values()):
        names = [name for name, argument in launch.arguments.items() if argument is buffer]
        if len(names) > 1 and buffer in written:
            both = " and ".join(f"`{name}`" for name in names)
            yield Diagnostic(
                "E221",
                "error",
                f"`{buffer.name}` is passed as {both} of `{launch.kernel.name}`, which writes it",
                Label(launch.span, "launched here"),
                help="pass tensors that do not overlap; make a `workspace(...)` for intermediate results",
                kernel=program.name,
            )


def _uninitialised_workspaces(program: Program, launch: Launch, written: set[Buffer]) -> Iterator[Diagnostic]:
    """An earlier launch, or this one, writes each workspace that is passed."""
    own = _written_arguments(launch)
    for buffer in dict.fromkeys(launch.arguments.values()):
        if buffer in program.workspaces and buffer not in written and buffer not in own:
            yield Diagnostic(
                "E221",
                "error",
                f"`{launch.kernel.name}` reads `{buffer.name}`, which no earlier launch writes",
                Label(launch.span, "launched here"),
                (Label(buffer.span, "uninitialised here"),),
                help="launch a kernel that fills the workspace first",
                kernel=program.name,
            )


def _false_assumptions(program: Program, launch: Launch) -> Iterator[Diagnostic]:
    """No assumption of the kernel is false for all sizes of the program."""
    for stmt in walk(launch.kernel.body):
        if isinstance(stmt, Assume) and substitute(stmt.cond, dict(launch.sizes)) is FALSE:
            yield Diagnostic(
                "E221",
                "error",
                f"`{launch.kernel.name}` assumes `{show(stmt.cond)}`, which is false for every size here",
                Label(launch.span, "launched here"),
                (Label(stmt.span, "assumed here"),),
                help="launch it on tensors whose sizes satisfy it",
                kernel=program.name,
            )
