"""Checks of integers read from memory: index terms that denote elements of tensors which the kernel does not write."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.executor import error_at
from argus.core.check.parts import expressions
from argus.core.diagnostic import Diagnostic
from argus.core.index import Coord, Read
from argus.core.index_text import show
from argus.core.ir import Atomic, Buffer, Copy, Kernel, Let, Map, Stmt, Tag, View, walk
from argus.core.walk import mentions, topological


def check_reads(kernel: Kernel) -> Iterator[Diagnostic]:
    """Each such term is an element of an integer parameter of the kernel that the kernel does not write."""
    known = {buffer.name: buffer for buffer in kernel.parameters}
    written = {buffer.name: stmt for stmt in walk(kernel.body) for buffer in _stored_tensors(stmt)}
    seen: set[Read] = set()
    for stmt in walk(kernel.body):
        for term in read_terms(stmt):
            if term in seen:
                continue
            seen.add(term)
            buffer = known.get(term.array)
            whole = buffer is not None and len(buffer.shape) == len(term.at) and buffer.dtype.family == "int"
            if not whole:
                message = f"`{show(term)}` is not an element of a tensor of integers"
                yield error_at(kernel, stmt, "E220", message, "read integers from a parameter of the kernel")
            elif term.array in written:
                message = f"`{show(term)}` is read as a constant, and the kernel writes `{term.array}`"
                yield error_at(kernel, stmt, "E220", message, "write to another tensor; the next launch may read that")
    for name in sorted((read_arrays(kernel) - {term.array for term in seen}) & written.keys()):
        message = f"a promise reads `{name}`, and the kernel writes it"
        yield error_at(kernel, written[name], "E220", message, "write to another tensor; the next launch may read that")


def read_terms(stmt: Stmt) -> Iterator[Read]:
    """The terms for integers from memory in a statement's expressions."""
    for node in topological(expressions(stmt)):
        if isinstance(node, Read):
            yield node


def read_arrays(kernel: Kernel) -> frozenset[str]:
    """The tensors of integers that statements read, and that the promises about those read; the latter come before."""
    found = {term.array for stmt in walk(kernel.body) for term in read_terms(stmt)}
    for buffer in reversed(kernel.parameters):
        if buffer.name in found:
            found |= {node.array for node in topological([buffer.promise]) if isinstance(node, Read)}
    return frozenset(found)


def indirect_tags(kernel: Kernel) -> frozenset[str]:
    """Names of tag components that depend on integers from memory: their values are such integers, or coordinates
    along an axis that some copy indexes by them.
    """
    stmts = tuple(walk(kernel.body))
    axes = {
        (view.buffer, axis)
        for stmt in stmts
        if isinstance(stmt, Copy)
        for view in (stmt.source, stmt.target)
        for axis, at in enumerate(view.at)
        if mentions(at, (Read,)) and not mentions(at, (Coord,))
    }
    return frozenset(
        name
        for stmt in stmts
        if isinstance(stmt, Tag)
        for name, value in stmt.names
        if mentions(value, (Read,)) or (isinstance(value, Coord) and (stmt.view.buffer, value.axis) in axes)
    )


def _stored_tensors(stmt: Stmt) -> tuple[Buffer, ...]:
    match stmt:
        case Copy(target=View(buffer=buffer)) | Map(target=View(buffer=buffer)):
            return (buffer,) if buffer.space == "global" else ()
        case Let(value=Atomic(view=View(buffer=buffer))):
            return (buffer,) if buffer.space == "global" else ()
        case _:
            return ()


def written_tensors(kernel: Kernel) -> frozenset[Buffer]:
    """The tensors that a kernel writes."""
    return frozenset(buffer for stmt in walk(kernel.body) for buffer in _stored_tensors(stmt))
