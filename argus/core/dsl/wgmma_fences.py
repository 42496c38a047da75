"""Inserts `wgmma.fence` between ordinary accesses to registers and a wgmma that uses them.

Only `wgmma.fence` orders ordinary accesses to an accumulator, or to A in registers, before the instruction [NVIDIA PTX
ISA, wgmma.fence]. A fence is inserted wherever such an access may precede on some path through loops and branches; at
the start of a body all of these registers count as accessed.
"""

from __future__ import annotations

from attrs import evolve

from argus.core.ir import Buffer, Copy, Fence, Fold, For, Map, Mma, One, Origin, Roles, Stmt, bodies, walk, with_bodies
from argus.core.ir.element_walk import gets

Dirty = frozenset[Buffer]
Body = tuple[Stmt, ...]


def with_fences(body: Body) -> Body:
    """The body with its fences; unchanged if it has no wgmma on registers."""
    watched = frozenset(buffer for stmt in walk(body) if isinstance(stmt, Mma) for buffer in _operands(stmt))
    return _insert_fences(body, watched, watched)[0] if watched else body


def _operands(stmt: Mma) -> Dirty:
    if stmt.atom.completion.queue != "wgmma":
        return frozenset()
    return frozenset(view.buffer for view in (stmt.target, stmt.a) if view.buffer.space == "register")


def _accessed(stmt: Stmt) -> Dirty:
    match stmt:
        case Map(target=target, elem=elem):
            return frozenset((target.buffer, *(get.view.buffer for get in gets(elem))))
        case Copy(source=source, target=target) | Fold(source=source, target=target):
            return frozenset((source.buffer, target.buffer))
        case _:
            return frozenset()


def _insert_fences(body: Body, dirty: Dirty, watched: Dirty) -> tuple[Body, Dirty]:
    """The body with its fences, and the registers accessed since the last fence at its end."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Mma) and _operands(stmt) & dirty:
            made.append(Fence("wgmma", span=stmt.span, origin=Origin("wgmma", 0)))
            dirty = frozenset()
        changed, dirty = _insert_in_bodies(stmt, dirty | (_accessed(stmt) & watched), watched)
        made.append(changed)
    return tuple(made), dirty


def _insert_in_bodies(stmt: Stmt, dirty: Dirty, watched: Dirty) -> tuple[Stmt, Dirty]:
    match stmt:
        case For(body=body):
            # An iteration may follow unfenced accesses of the previous one, and the loop may run zero times.
            again = dirty | _insert_fences(body, dirty, watched)[1]
            inner, left = _insert_fences(body, again, watched)
            return evolve(stmt, body=inner), dirty | left
        case Roles():
            return stmt, dirty
        case _:
            parts = [_insert_fences(part, dirty, watched) for part in bodies(stmt)]
            if not parts:
                return stmt, dirty
            skipped = dirty if isinstance(stmt, One) else frozenset[Buffer]()
            return with_bodies(stmt, tuple(part for part, _ in parts)), skipped.union(*(left for _, left in parts))
