"""Kernels and programs of several."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir.statements import Roles, Stmt
from argus.core.ir.storage import Buffer
from argus.core.span import NOWHERE, Span
from argus.core.target import Target


@frozen(eq=False)
class Kernel:
    """A traced kernel. sizes: the symbols of its tensors' shapes. blocks: one symbol an axis of the grid.

    Block `i` of axis `a` runs for 0 <= i < grid[a]; `thread` counts the threads of a block. cluster: blocks along each
    axis of the grid that run together, (1,) if none do; a block's rank counts those of its cluster, first axis fastest.
    """

    name: str
    target: Target
    parameters: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    threads: int
    grid: tuple[Index, ...]
    blocks: tuple[Symbol, ...]
    thread: Symbol
    prologue: tuple[Stmt, ...]
    roles: Roles | None = None
    epilogue: tuple[Stmt, ...] = ()
    cluster: tuple[int, ...] = (1,)
    span: Span = NOWHERE

    @property
    def body(self) -> tuple[Stmt, ...]:
        """All statements, in program order."""
        middle = () if self.roles is None else (self.roles,)
        return (*self.prologue, *middle, *self.epilogue)

    @property
    def peers(self) -> int:
        """Blocks of a cluster."""
        return prod(self.cluster)

    @property
    def rank(self) -> Index:
        """Of the block in its cluster."""
        found, below = algebra.const(0), 1
        for block, size in zip(self.blocks, self.cluster, strict=False):
            found = algebra.add(found, algebra.mul(algebra.mod(algebra.sym(block), size), below))
            below *= size
        return found


def _copied(arguments: Mapping[str, Buffer]) -> Mapping[str, Buffer]:
    return dict(arguments)


@frozen(eq=False)
class Launch:
    """A kernel on tensors of a program: the buffer of each of its parameters, by name.

    sizes: the kernel's sizes as the program has them, by the symbol of the kernel.
    """

    kernel: Kernel
    arguments: Mapping[str, Buffer] = field(converter=_copied)
    sizes: tuple[tuple[Symbol, Index], ...] = ()
    span: Span = NOWHERE


@frozen(eq=False)
class Program:
    """Launches in stream order: each begins when the one before is done, and finds its stores in place.

    The tags that a launch proves of what it stores are those with which the next ones read. A workspace comes into
    being with the program, uninitialised; zeros in it are a launch's work like any other.
    """

    name: str
    parameters: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    workspaces: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    span: Span = NOWHERE
