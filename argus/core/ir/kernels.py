"""Kernels, launches and programs: the roots of the tile IR."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.index_text import show
from argus.core.ir.claims import Equals
from argus.core.ir.statements import Assert, Roles, Stmt
from argus.core.ir.storage import Buffer
from argus.core.span import NOWHERE, Span
from argus.core.target import Target


@frozen(eq=False)
class Kernel:
    """A traced kernel.

    sizes: the symbols of its tensors' shapes. blocks: the block index along each axis of the grid, in [0, grid[axis]).
    thread: the thread index within a block. cluster: the blocks of a cluster along each axis of the grid, (1,) without
    clusters. resident: blocks of which one processor must have the registers at once; compilers limit those of a thread
    accordingly. It changes nothing that is computed.
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
    resident: int = 1
    span: Span = NOWHERE

    def __repr__(self) -> str:
        """One line: name, target, parameters, and what a launch has; `kernel_text` prints the statements."""
        tensors = ", ".join(f"{each.name}[{', '.join(map(show, each.shape))}] {each.dtype}" for each in self.parameters)
        grid = ", ".join(map(show, self.grid))
        return f"<Kernel {self.name} ({self.target}): {tensors}; {self.threads} threads, grid ({grid})>"

    def _repr_html_(self) -> str:
        """A table of the parameters, under what a launch has."""
        grid = ", ".join(map(show, self.grid))
        title = f"<b>{escape(self.name)}</b> ({self.target}): {self.threads} threads, grid ({escape(grid)})"
        rows = "".join(
            f"<tr><td>{escape(each.name)}</td><td>[{escape(', '.join(map(show, each.shape)))}]</td>"
            f"<td>{each.dtype}</td></tr>"
            for each in self.parameters
        )
        return f"<p>{title}</p><table><tr><th>tensor</th><th>shape</th><th>type</th></tr>{rows}</table>"

    @property
    def body(self) -> tuple[Stmt, ...]:
        """All statements, in program order."""
        middle = () if self.roles is None else (self.roles,)
        return (*self.prologue, *middle, *self.epilogue)

    @property
    def peers(self) -> int:
        """The number of blocks of a cluster."""
        return prod(self.cluster)

    @property
    def rank(self) -> Index:
        """The rank of the block in its cluster, first axis fastest."""
        found, below = algebra.const(0), 1
        for block, size in zip(self.blocks, self.cluster, strict=False):
            found = algebra.add(found, algebra.mul(algebra.mod(algebra.sym(block), size), below))
            below *= size
        return found


def _copy_arguments(arguments: Mapping[str, Buffer]) -> Mapping[str, Buffer]:
    return dict(arguments)


@frozen(eq=False)
class Launch:
    """A launch of a kernel in a program.

    arguments: the program's buffer for each parameter of the kernel, by name. sizes: for each size symbol of the
    kernel, its value over the sizes of the program.
    """

    kernel: Kernel
    arguments: Mapping[str, Buffer] = field(converter=_copy_arguments)
    sizes: tuple[tuple[Symbol, Index], ...] = ()
    span: Span = NOWHERE


@frozen(eq=False)
class Program:
    """Launches in stream order: each begins after the previous one has ended, and sees all its stores.

    A launch reads elements with the tags that earlier launches were proved to store. Workspaces are uninitialised when
    the program starts; a kernel that needs zeros in one has to be preceded by a launch that stores them.
    """

    name: str
    parameters: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    workspaces: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    span: Span = NOWHERE

    @property
    def target(self) -> Target:
        """The target of its kernels."""
        return self.launches[0].kernel.target


@frozen(eq=False)
class ClaimedProgram(Program):
    """A program that claims formulas of the tensors that it leaves, in terms of those that no launch writes.

    claims: statements that assert `Equals` of whole parameters; no launch executes them.
    """

    claims: tuple[Assert, ...] = ()


def program_claims(program: Program) -> tuple[tuple[Assert, Equals], ...]:
    """The claims of a program about the tensors that it leaves, each with its statement."""
    claims = program.claims if isinstance(program, ClaimedProgram) else ()
    return tuple((stmt, stmt.claim) for stmt in claims if isinstance(stmt.claim, Equals))
