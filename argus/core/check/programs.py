"""Programs: what a launch is given, and what it may rely on while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.algebra import FALSE
from argus.core.check.reads import written_tensors
from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Assume, Buffer, Launch, Program, walk
from argus.core.walk import show, substitute


def check_program(program: Program) -> tuple[Diagnostic, ...]:
    """Every fault found, launch by launch; its kernels are well-formed each for itself."""
    return tuple(_checks(program))


def _checks(program: Program) -> Iterator[Diagnostic]:
    if not program.launches:
        message = f"program `{program.name}` launches nothing"
        yield Diagnostic("E107", "error", message, Label(program.span, "declared here"), help="call a kernel in it")
    written: set[Buffer] = set()
    for launch in program.launches:
        yield from _overlapping(program, launch)
        yield from _unwritten(program, launch, written)
        yield from _assumed(program, launch)
        written |= _written(launch)


def _written(launch: Launch) -> frozenset[Buffer]:
    return frozenset(launch.arguments[buffer.name] for buffer in written_tensors(launch.kernel))


def _overlapping(program: Program, launch: Launch) -> Iterator[Diagnostic]:
    """A kernel's proof takes its tensors to lie apart: one that it writes is passed once."""
    written = _written(launch)
    for buffer in dict.fromkeys(launch.arguments.values()):
        names = [name for name, given in launch.arguments.items() if given is buffer]
        if len(names) > 1 and buffer in written:
            both = " and ".join(f"`{name}`" for name in names)
            yield Diagnostic(
                "E221",
                "error",
                f"`{buffer.name}` is both {both} of `{launch.kernel.name}`, which writes it",
                Label(launch.span, "launched here"),
                help="pass tensors that lie apart; make a `workspace(...)` for what is between",
                kernel=program.name,
            )


def _unwritten(program: Program, launch: Launch, written: set[Buffer]) -> Iterator[Diagnostic]:
    """A workspace is written before it is read."""
    own = _written(launch)
    for buffer in dict.fromkeys(launch.arguments.values()):
        if buffer in program.workspaces and buffer not in written and buffer not in own:
            yield Diagnostic(
                "E221",
                "error",
                f"`{launch.kernel.name}` reads `{buffer.name}`, which no launch before it writes",
                Label(launch.span, "launched here"),
                (Label(buffer.span, "uninitialised here"),),
                help="launch a kernel that fills the workspace first",
                kernel=program.name,
            )


def _assumed(program: Program, launch: Launch) -> Iterator[Diagnostic]:
    """No assumption of the kernel is false whatever the program's sizes."""
    for stmt in walk(launch.kernel.body):
        if isinstance(stmt, Assume) and substitute(stmt.cond, dict(launch.sizes)) is FALSE:
            yield Diagnostic(
                "E221",
                "error",
                f"`{launch.kernel.name}` assumes `{show(stmt.cond)}`, which no launch here meets",
                Label(launch.span, "launched here"),
                (Label(stmt.span, "assumed here"),),
                help="launch it on tensors whose sizes meet it",
                kernel=program.name,
            )
