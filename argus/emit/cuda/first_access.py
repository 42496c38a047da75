"""Where a CUDA kernel waits for the launch before: ahead of its first access to global memory, early reads apart."""

from __future__ import annotations

from argus.core.check.parts import views
from argus.core.check.reads import read_terms
from argus.core.ir import Assert, Assume, Copy, Edit, Fold, Kernel, Let, Map, Policy, Roles, Stmt, Tag, walk


def first_access(kernel: Kernel) -> int:
    """The number of statements of the kernel's body ahead of the wait."""
    early = _early_reads(kernel)
    accesses = (n for n, stmt in enumerate(kernel.body) if _accesses_global(stmt) and not _is_early(stmt, early))
    return next(accesses, len(kernel.body))


def _accesses_global(stmt: Stmt) -> bool:
    """Whether the statement may access global memory."""
    every = tuple(walk((stmt,)))
    moves = isinstance(stmt, Roles) or any(isinstance(each, Copy | Map | Let | Fold | Edit) for each in every)
    return moves or any(True for each in every if not isinstance(each, Tag | Assert | Assume) for _ in read_terms(each))


def _early_reads(kernel: Kernel) -> frozenset[str]:
    """The names of the tensors that may be read ahead of the wait for the previous launch."""
    numbers = (stmt.args for stmt in kernel.prologue if isinstance(stmt, Policy) and stmt.name == "early_reads")
    return frozenset(kernel.parameters[number].name for args in numbers for number in args)


def _is_early(stmt: Stmt, tensors: frozenset[str]) -> bool:
    """Whether it is a copy from one of these tensors to registers, or computes with registers alone."""
    if any(term.array not in tensors for term in read_terms(stmt)):
        return False
    match stmt:
        case Copy(source=source, target=target):
            reads = source.buffer.space != "global" or source.buffer.name in tensors
            return reads and target.buffer.space == "register" and stmt.signal is None and stmt.through is None
        case Map():
            return all(each.buffer.space == "register" for each in views(stmt))
        case _:
            return False
