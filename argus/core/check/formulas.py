"""Checks of formulas in claims: they are about what the kernel reads, in terms of its own tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Assert, Buffer, Copy, Equals, Kernel, Stmt, walk
from argus.core.values.expr import Element
from argus.core.values.rewriting import elements

_ONLY_READ = "state it in terms of the tensors that are only read, or of what a tensor held before: `before(Y)[r, n]`"


def formula_claims(kernel: Kernel) -> Iterator[tuple[Assert, Equals]]:
    """The claims that an output equals a formula, each with its statement, in program order."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, Assert) and isinstance(stmt.claim, Equals):
            yield stmt, stmt.claim


def check_formulas(kernel: Kernel) -> Iterator[Diagnostic]:
    """Each formula reads elements of parameters, with one coordinate for each axis, that the kernel does not write."""
    known = {buffer.name: buffer for buffer in kernel.parameters}
    written = {stmt.target.buffer.name for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    for stmt, claim in formula_claims(kernel):
        yield from formula_faults(kernel.name, stmt, claim, known, written)


def formula_faults(
    owner: str, stmt: Stmt, claim: Equals, known: Mapping[str, Buffer], written: Collection[str]
) -> Iterator[Diagnostic]:
    """The faults of one formula, one for each tensor. owner: the kernel or program that claims it.

    known: its tensors by name; written: the names of those that it writes.
    """
    output = claim.view.buffer.name
    reported: set[str] = set()
    for each in elements(claim.formula):
        found = None if each.tensor in reported else _fault(output, each, known, written, claim.before)
        if found is not None:
            reported.add(each.tensor)
            code, message, advice = found
            yield Diagnostic(code, "error", message, Label(stmt.span, "claimed here"), help=advice, kernel=owner)


def _fault(
    output: str, each: Element, known: Mapping[str, Buffer], written: Collection[str], before: Collection[str]
) -> tuple[str, str, str] | None:
    """Code, message and repair of what is wrong with an element that the formula reads."""
    buffer = known.get(each.tensor)
    if buffer is None:
        message = f"the formula of `{output}` reads `{each.tensor}`, which is no tensor of its inputs"
        return "E111", message, f"the tensors are {', '.join(known)}"
    if (each.tensor == output or each.tensor in written) and each.tensor not in before:
        return "E112", f"the formula of `{output}` reads `{each.tensor}`, which is written", _ONLY_READ
    if len(buffer.shape) != len(each.at):
        axes = f"{len(each.at)} coordinates, its axes are {len(buffer.shape)}"
        return "E113", f"the formula of `{output}` reads `{each.tensor}` at {axes}", "give one coordinate for each axis"
    return None
