"""Checks of formulas in claims: they are about what the kernel reads, in terms of its own tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from argus.core.check.executor import error_at
from argus.core.diagnostic import Diagnostic
from argus.core.ir import Assert, Buffer, Copy, Equals, Kernel, Stmt, walk
from argus.core.values.expr import Element
from argus.core.values.rewriting import elements

_ONLY_READ = "state it in terms of the tensors that the kernel only reads"


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
        output = claim.view.buffer.name
        reported: set[str] = set()
        for each in elements(claim.formula):
            if each.tensor not in reported:
                found = tuple(_element(kernel, stmt, output, each, known, written))
                reported |= {each.tensor} if found else set()
                yield from found


def _element(
    kernel: Kernel, stmt: Stmt, output: str, each: Element, known: Mapping[str, Buffer], written: set[str]
) -> Iterator[Diagnostic]:
    buffer = known.get(each.tensor)
    if buffer is None:
        message = f"the formula of `{output}` reads `{each.tensor}`, which is no tensor of the kernel"
        yield error_at(kernel, stmt, "E111", message, f"its tensors are {', '.join(known)}", "claimed here")
    elif each.tensor == output or each.tensor in written:
        message = f"the formula of `{output}` reads `{each.tensor}`, which the kernel writes"
        yield error_at(kernel, stmt, "E112", message, _ONLY_READ, "claimed here")
    elif len(buffer.shape) != len(each.at):
        axes = f"{len(each.at)} coordinates, its axes are {len(buffer.shape)}"
        message = f"the formula of `{output}` reads `{each.tensor}` at {axes}"
        yield error_at(kernel, stmt, "E113", message, "give one coordinate for each axis", "claimed here")
