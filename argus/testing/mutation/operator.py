"""The type of mutation operators, and helpers to define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from argus.core.algebra import mod, sym
from argus.core.index import Const, Index, Symbol
from argus.core.ir import Alloc, Buffer, For, If, Kernel, Let, One, Stmt, View, bodies, walk
from argus.core.ir.surgery import kernel_with_objects, with_stmts
from argus.core.span import Span

Change = tuple[Sequence[Stmt], str]
"""The statements that replace one, and a description of the change."""


@frozen(eq=False)
class Mutant:
    """A kernel after one change. place: the changed statement or allocation.

    claims: whether the kernel's claims and the tags of its inputs are unchanged.
    """

    operator: str
    kernel: Kernel
    what: str
    place: Span
    claims: bool = True

    def __str__(self) -> str:
        return f"{self.operator}: {self.what} at {self.place}"


Make = Callable[[Kernel], Iterable["Made"]]


@frozen(eq=False)
class Made:
    """A changed kernel, without its operator's name."""

    kernel: Kernel
    what: str
    place: Span


@frozen(eq=False)
class Operator:
    """A named change. does: describes it. claims: whether it leaves the kernel's claims unchanged."""

    name: str
    does: str
    make: Make
    claims: bool = True

    def __call__(self, kernel: Kernel) -> Iterator[Mutant]:
        """The mutants at every place where the operator applies, in program order."""
        for made in self.make(kernel):
            yield Mutant(self.name, made.kernel, made.what, made.place, self.claims)


def each(kind: type[Any] | tuple[type[Any], ...], change: Callable[[Kernel, Any], Iterable[Change]]) -> Make:
    """Change every statement of some kinds, one at a time. change: yields the changes of one statement."""

    def make(kernel: Kernel) -> Iterator[Made]:
        for stmt in walk(kernel.body):
            if isinstance(stmt, kind):
                for new, what in change(kernel, stmt):
                    yield Made(with_stmts(kernel, stmt, new), what, stmt.span)

    return make


def each_buffer(change: Callable[[Buffer], Iterable[tuple[Buffer, str]]], *spaces: str) -> Make:
    """Replace every buffer of some memory spaces, one at a time, in the whole kernel."""

    def make(kernel: Kernel) -> Iterator[Made]:
        for buffer in allocated(kernel, *spaces):
            for other, what in change(buffer):
                yield Made(kernel_with_objects(kernel, {id(buffer): other}), f"`{buffer.name}` {what}", buffer.span)

    return make


def allocated(kernel: Kernel, *spaces: str) -> list[Buffer]:
    """The buffers allocated in these memory spaces, in program order."""
    buffers = [stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc)]
    return [buffer for buffer in buffers if buffer.space in spaces]


def other(stmt: Any, what: str, **fields: object) -> Iterator[Change]:  # noqa: ANN401 reason: any statement
    """The statement with other fields; nothing if they are unchanged."""
    if any(getattr(stmt, name) is not value and getattr(stmt, name) != value for name, value in fields.items()):
        yield (evolve(stmt, **fields),), what


def lists(kernel: Kernel) -> Iterator[tuple[Stmt, ...]]:
    """Every list of statements: prologue, epilogue, and each body."""
    yield kernel.prologue
    yield kernel.epilogue
    for stmt in walk(kernel.body):
        yield from bodies(stmt)


def around(kernel: Kernel, wanted: Stmt) -> tuple[Stmt, ...]:
    """The statements that enclose one, outermost first."""

    def search(body: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
        for stmt in body:
            if stmt is wanted:
                return ()
            for part in bodies(stmt):
                found = search(part)
                if found is not None:
                    return (stmt, *found)
        return None

    return search(kernel.body) or ()


def loops_around(kernel: Kernel, stmt: Stmt) -> list[Symbol]:
    """Variables of the loops around a statement, outermost first."""
    return [each.symbol for each in around(kernel, stmt) if isinstance(each, For)]


def counted(kernel: Kernel, stmt: Stmt) -> list[Symbol]:
    """The loop variables and counter values that are in scope at a statement."""
    holders = around(kernel, stmt)
    own: list[Symbol] = []
    for holder in holders:
        if isinstance(holder, For | If | One):
            own += [s.symbol for part in bodies(holder) for s in part if isinstance(s, Let)]
    return [*loops_around(kernel, stmt), *own]


def at_axis(view: View, axis: int, index: Index) -> View:
    """The view with another expression along one axis of its buffer."""
    return evolve(view, at=(*view.at[:axis], index, *view.at[axis + 1 :]))


def around_the_end(view: View, axis: int, index: Index) -> Index:
    """An index wrapped into the buffer's extent, if that is a constant."""
    extent = view.buffer.shape[axis]
    return mod(index, extent.value) if isinstance(extent, Const) else index


def names(symbols: Iterable[Symbol]) -> list[Index]:
    return [sym(symbol) for symbol in symbols]
