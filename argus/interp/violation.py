"""Violations of invariants as data, and the collection of those that one run finds."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.ir import Buffer, Stmt

Path = tuple[int, ...]
Iteration = tuple[tuple[str, int], ...]
END: Path = (1 << 62,)


@frozen
class Event:
    """One execution of a statement by one wave.

    path: its position in program order, comparable between waves. iteration: values of the enclosing loop symbols.
    epoch: the number of barriers that the wave had passed.
    """

    stmt: Stmt
    block: tuple[int, ...]
    wave: int
    path: Path
    iteration: Iteration
    epoch: int


@frozen
class Violation:
    """A violation of one invariant by one element in one execution of a statement.

    code: the invariant. other: the statement it conflicts with. thread: its number in the block. value: the register.
    element: coordinates in `buffer`. facts: named texts, such as two tags that differ. related: further statements
    that explain it, each with a remark; a remark on `other` replaces the default one.
    """

    code: str
    message: str
    stmt: Stmt
    other: Stmt | None
    block: tuple[int, ...]
    thread: int
    other_thread: int | None
    value: int | None
    element: tuple[int, ...] | None
    buffer: str
    iteration: Iteration
    other_iteration: Iteration
    facts: tuple[tuple[str, str], ...]
    epoch: int | None
    related: tuple[tuple[Stmt, str], ...] = ()


@define(eq=False)
class Reporter:
    """Collects violations: for each (code, stmt, other) the first by block, program order, thread and value.

    limit: the number of distinct violations to keep.
    """

    limit: int
    _found: dict[tuple[str, Stmt, Stmt | None], tuple[tuple[object, ...], Violation]] = field(
        factory=dict[tuple[str, Stmt, Stmt | None], tuple[tuple[object, ...], Violation]], init=False
    )

    def report(
        self,
        code: str,
        message: str,
        event: Event,
        *,
        thread: int,
        value: int | None = None,
        element: Sequence[int] | None = None,
        buffer: str = "",
        other: Event | None = None,
        other_thread: int | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        related: tuple[tuple[Stmt, str], ...] = (),
    ) -> bool:
        """Record a violation; returns whether it is the first of its kind so far, and thus kept."""
        violation = Violation(
            code,
            message,
            event.stmt,
            None if other is None else other.stmt,
            event.block,
            thread,
            other_thread,
            value,
            None if element is None else tuple(int(x) for x in element),
            buffer,
            event.iteration,
            () if other is None else other.iteration,
            facts,
            event.epoch,
            related,
        )
        return self._keep(violation, (event.block, event.path, code, thread, -1 if value is None else value))

    def _keep(self, violation: Violation, rank: tuple[object, ...]) -> bool:
        key = (violation.code, violation.stmt, violation.other)
        known = self._found.get(key)
        if known is None and len(self._found) >= self.limit:
            return False
        first = known is None or rank < known[0]
        if first:
            self._found[key] = (rank, violation)
        return first

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations, by block and program order, independent of the schedule."""
        ordered = sorted(self._found.values(), key=lambda pair: pair[0])
        return tuple(violation for _, violation in ordered)


class HaltError(Exception):
    """Ends a run after a fault that leaves the rest of it without a meaning; the fault has been reported."""


class OutOfBoundsReadError(ArgusError):
    """An expression reads an integer tensor out of bounds."""

    def __init__(self, buffer: Buffer, element: tuple[int, ...], extents: tuple[int, ...]) -> None:
        message = f"not built yet: an element of `{buffer.name}` beyond its extents in the interpreter"
        super().__init__(Diagnostic("E501", "error", message, Label(buffer.span, "read by an expression")))
        self.buffer, self.element, self.extents = buffer, element, extents


class UnsatisfiedPromiseError(ArgusError):
    """No integers were found that satisfy a promise at the given sizes, so no launch can be made."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        message = f"no integers were found that satisfy the promise about `{buffer.name}` at these sizes"
        super().__init__(Diagnostic("E402", "error", message, Label(buffer.span, "promised of its elements")))


def not_built(what: str, stmt: Stmt) -> ArgusError:
    """The error (E501) for a construct of the IR that the interpreter does not support yet."""
    message = f"not built yet: `{what}` in the interpreter"
    return ArgusError(Diagnostic("E501", "error", message, Label(stmt.span, "the interpreter cannot run this")))
