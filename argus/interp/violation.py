"""What a run may find wrong, as data, and the collection of what one run found."""

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

    path: its place in program order, comparable between waves. iteration: values of the loop symbols around
    it. epoch: barriers that the wave had passed.
    """

    stmt: Stmt
    block: tuple[int, ...]
    wave: int
    path: Path
    iteration: Iteration
    epoch: int


@frozen
class Violation:
    """One invariant that one element of one execution breaks.

    code: the invariant. other: the statement it conflicts with. thread: of the block. value: the register.
    element: coordinates in `buffer`. facts: named texts, such as two tags that differ. related: further statements
    that explain it, each with a remark; one of `other` takes the place of the usual.
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
    """Keeps the first violation, by block, program order, thread and value, of each (code, stmt, other)."""

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
        """Take note of a violation; whether it is kept, so far."""
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
        """In program order of the blocks, whatever the schedule was."""
        ordered = sorted(self._found.values(), key=lambda pair: pair[0])
        return tuple(violation for _, violation in ordered)


class HaltError(Exception):
    """The run has broken what gives the rest of it a meaning; the fault has been reported."""


class BeyondError(ArgusError):
    """An expression reads an integer that its tensor does not have."""

    def __init__(self, buffer: Buffer, element: tuple[int, ...], extents: tuple[int, ...]) -> None:
        message = f"not built yet: an element of `{buffer.name}` beyond its extents in the interpreter"
        super().__init__(Diagnostic("E501", "error", message, Label(buffer.span, "read by an expression")))
        self.buffer, self.element, self.extents = buffer, element, extents


class UnkeptError(ArgusError):
    """No integers are known that keep a promise at the sizes at hand, so that no launch is either."""

    def __init__(self, buffer: Buffer) -> None:
        message = f"no integers were found that keep what is promised of `{buffer.name}` at these sizes"
        super().__init__(Diagnostic("E402", "error", message, Label(buffer.span, "promised of its elements")))


def not_built(what: str, stmt: Stmt) -> ArgusError:
    """The error for a construct that has a place in the IR and no meaning here yet."""
    message = f"not built yet: `{what}` in the interpreter"
    return ArgusError(Diagnostic("E501", "error", message, Label(stmt.span, "the interpreter cannot run this")))
