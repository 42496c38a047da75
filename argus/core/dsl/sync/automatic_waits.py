"""Inserts the waits of `@kernel(waits="automatic")`, each before the first statement that needs it.

A forward analysis over the traced body. An operation is in flight until a wait covers it, and its age is the least
number of entries, on any path, that were issued to its queue after it and complete after it. A statement that conflicts
with operations in flight gets `Wait(queue, pending)` before it, where `pending` is the smallest age among them: more
recent operations stay in flight. At a barrier, and wherever else other threads may rely on what this thread has done,
the conflicts are those of other threads as well.

Nothing relies on this pass: what it inserts are ordinary statements, which the verifier checks as it does those of the
kernel's author.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from attrs import frozen

from argus.core.atom import Queue
from argus.core.dsl.faults import fault
from argus.core.dsl.sync.accesses import (
    Access,
    conflict,
    immediate_accesses,
    in_groups,
    queue_of_operation,
    queued_accesses,
    releases,
    shared_with_others,
)
from argus.core.index import Const
from argus.core.ir import Buffer, Commit, Copy, For, Mma, One, Origin, Roles, Stmt, Wait, bodies, trips, with_bodies
from argus.core.ir.queues import completes_in_order
from argus.core.target import Target

Body = tuple[Stmt, ...]


@frozen
class AccessInFlight:
    """An access that an operation makes until its queue completes it."""

    operation: Copy | Mma
    access: Access


InFlight = Mapping[AccessInFlight, int]
"""The age of each access; `_OPEN` before the commit of its group."""
_OPEN = -1


def with_waits(body: Body, target: Target, unwaited: frozenset[Stmt]) -> Body:
    """The body with a wait before each statement that needs one.

    unwaited: copies for which the author waits. Raises E222 for operations that no commit has made entries of their
    queue where they are needed, and for roles.
    """
    inserter = _Inserter(target, unwaited, shared_with_others(body))
    made, in_flight = inserter.body(body, {})
    return (*made, *_waits_for({each: age for each, age in in_flight.items() if _outlives(each)}, None))


@frozen
class _Inserter:
    target: Target
    unwaited: frozenset[Stmt]
    shared: frozenset[Buffer]

    def body(self, body: Body, in_flight: InFlight) -> tuple[Body, InFlight]:
        """The body with its waits, and what is in flight at its end."""
        made: list[Stmt] = []
        for stmt in body:
            waits = _waits_for(self._needed(stmt, in_flight), stmt)
            for wait in waits:
                in_flight = _after_wait(in_flight, wait)
            changed, in_flight = self._after(stmt, in_flight)
            made += [*waits, changed]
        return tuple(made), in_flight

    def _after(self, stmt: Stmt, in_flight: InFlight) -> tuple[Stmt, InFlight]:
        """The statement, with waits in the bodies nested in it, and what is in flight after it."""
        match stmt:
            case For():
                return self._loop(stmt, in_flight)
            case Roles():
                fault(
                    "E222",
                    "automatic waits in a kernel with roles",
                    here="what a role has issued is handed on by its barriers",
                    span=stmt.span,
                    help='leave `waits="automatic"` out, and write the waits of each role, such as `wgmma.wait(0)`',
                )
            case Wait():
                return stmt, _after_wait(in_flight, stmt)
            case Commit(queue=queue):
                return stmt, self._after_commit(in_flight, queue)
            case Copy() | Mma():
                return stmt, self._after_issue(in_flight, stmt)
            case _:
                parts = [self.body(part, in_flight) for part in bodies(stmt)]
                if not parts:
                    return stmt, in_flight
                passed_by = [in_flight] if isinstance(stmt, One) else []
                left = _joined([*passed_by, *(after for _, after in parts)])
                return with_bodies(stmt, tuple(part for part, _ in parts)), left

    def _loop(self, stmt: For, in_flight: InFlight) -> tuple[Stmt, InFlight]:
        """An iteration follows what was in flight before the loop, or after another iteration."""
        entry = in_flight
        while True:
            body, after = self.body(stmt.body, entry)
            again = _joined([entry, after])
            if again == entry:
                break
            entry = again
        count = trips(stmt)
        runs = isinstance(count, Const) and count.value > 0
        return with_bodies(stmt, (body,)), after if runs else _joined([in_flight, after])

    def _needed(self, stmt: Stmt, in_flight: InFlight) -> InFlight:
        """The accesses that have to be complete before a statement."""
        if not in_flight:
            return in_flight
        released = self.shared if releases(stmt) else frozenset[Buffer]()
        immediate, queued = immediate_accesses(stmt), queued_accesses(stmt)

        def needs(each: AccessInFlight) -> bool:
            own = each.access
            if own.view.buffer in released or any(conflict(own, access) for access in immediate):
                return True
            return any(conflict(own, access) for access in queued) and not _follows_in_order(each.operation, stmt)

        return {each: age for each, age in in_flight.items() if needs(each)}

    def _after_issue(self, in_flight: InFlight, stmt: Copy | Mma) -> InFlight:
        queue = queue_of_operation(stmt)
        if queue is None:
            return in_flight
        grouped = in_groups(stmt)
        new = dict.fromkeys((AccessInFlight(stmt, access) for access in queued_accesses(stmt)), _OPEN if grouped else 0)
        older = in_flight if grouped else {each: self._older(each, age, stmt) for each, age in in_flight.items()}
        return {**older, **({} if stmt in self.unwaited else new)}

    def _older(self, each: AccessInFlight, age: int, stmt: Copy | Mma) -> int:
        """The age of an access after another entry."""
        same = _queue(each) == queue_of_operation(stmt) and completes_in_order(each.operation, stmt)
        return self._increased(each, age) if same else age

    def _after_commit(self, in_flight: InFlight, queue: Queue) -> InFlight:
        return {each: self._increased(each, age) if _queue(each) == queue else age for each, age in in_flight.items()}

    def _increased(self, each: AccessInFlight, age: int) -> int:
        """The age after one more entry, at most what a wait can name; a group begins with age 0."""
        return min(age + 1, self.target.queues[_queue(each)])


def _queue(each: AccessInFlight) -> Queue:
    return cast(Queue, queue_of_operation(each.operation))


def _follows_in_order(operation: Copy | Mma, stmt: Stmt) -> bool:
    """Whether the queue completes the operation before what the statement issues to it."""
    if queue_of_operation(stmt) != queue_of_operation(operation) or not isinstance(stmt, Copy | Mma):
        return False
    return not in_groups(operation) and not in_groups(stmt) and completes_in_order(operation, stmt)


def _after_wait(in_flight: InFlight, wait: Wait) -> InFlight:
    """What a wait leaves in flight. One for the reads of the sources leaves all, as their targets may be written."""
    if wait.of != "all":
        return in_flight
    return {each: age for each, age in in_flight.items() if _queue(each) != wait.queue or age < wait.pending}


def _joined(paths: Iterable[InFlight]) -> InFlight:
    """What is in flight after one of several paths: its age is the least."""
    left: dict[AccessInFlight, int] = {}
    for in_flight in paths:
        for each, age in in_flight.items():
            left[each] = min(age, left.get(each, age))
    return left


def _outlives(each: AccessInFlight) -> bool:
    """Whether an operation in flight may still access shared memory after its block has ended and given it back."""
    return each.operation.atom.proxy == "async" and each.access.view.buffer.space == "shared"


def _waits_for(needed: InFlight, stmt: Stmt | None) -> tuple[Wait, ...]:
    """The waits for accesses before a statement, one for each queue. None: before the end of the kernel."""
    least: dict[Queue, int] = {}
    for each, age in needed.items():
        if age == _OPEN:
            _open_group(stmt, each)
        least[_queue(each)] = min(age, least.get(_queue(each), age))
    lines = {_queue(each): (stmt or each.operation).span for each in needed}
    return tuple(Wait(queue, age, span=lines[queue], origin=Origin("waits", 0)) for queue, age in least.items())


def _open_group(stmt: Stmt | None, each: AccessInFlight) -> None:
    queue, name = _queue(each), each.access.view.buffer.name
    fault(
        "E222",
        f"`{name}` is needed while its group on the queue `{queue}` is open",
        here="the kernel ends with the group open" if stmt is None else "no wait before this line covers the group",
        span=(stmt or each.operation).span,
        help="end `with wgmma.group():` before this line"
        if queue == "wgmma"
        else f"write `{queue}.commit()` before it",
    )
