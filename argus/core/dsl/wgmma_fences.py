"""The fence between ordinary use of registers and an asynchronous matrix instruction that uses them.

An accumulator, or A in registers, that ordinary statements read or wrote is ordered before the instruction by
`wgmma.fence` alone [NVIDIA PTX ISA, wgmma.fence]. It is inserted where such a use may come before, in any order of
loops and branches; at the start of a body all of them count as used.
"""

from __future__ import annotations

from attrs import evolve

from argus.core.ir import Buffer, Copy, Fence, Fold, For, Map, Mma, One, Origin, Roles, Stmt, bodies, walk, with_bodies
from argus.core.ir.element_walk import gets

Dirty = frozenset[Buffer]
Body = tuple[Stmt, ...]


def with_fences(body: Body) -> Body:
    """The body with its fences; unchanged if nothing in it is asynchronous."""
    watched = frozenset(buffer for stmt in walk(body) if isinstance(stmt, Mma) for buffer in _operands(stmt))
    return _fenced(body, watched, watched)[0] if watched else body


def _operands(stmt: Mma) -> Dirty:
    if stmt.atom.completion.queue != "wgmma":
        return frozenset()
    return frozenset(view.buffer for view in (stmt.target, stmt.a) if view.buffer.space == "register")


def _touched(stmt: Stmt) -> Dirty:
    match stmt:
        case Map(target=target, elem=elem):
            return frozenset((target.buffer, *(get.view.buffer for get in gets(elem))))
        case Copy(source=source, target=target) | Fold(source=source, target=target):
            return frozenset((source.buffer, target.buffer))
        case _:
            return frozenset()


def _fenced(body: Body, dirty: Dirty, watched: Dirty) -> tuple[Body, Dirty]:
    """The body with its fences, and the registers used since the last one where it ends."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Mma) and _operands(stmt) & dirty:
            made.append(Fence("wgmma", span=stmt.span, origin=Origin("wgmma", 0)))
            dirty = frozenset()
        changed, dirty = _inside(stmt, dirty | (_touched(stmt) & watched), watched)
        made.append(changed)
    return tuple(made), dirty


def _inside(stmt: Stmt, dirty: Dirty, watched: Dirty) -> tuple[Stmt, Dirty]:
    match stmt:
        case For(body=body):
            # What one iteration leaves is what the next may begin with, and none may run.
            again = dirty | _fenced(body, dirty, watched)[1]
            inner, left = _fenced(body, again, watched)
            return evolve(stmt, body=inner), dirty | left
        case Roles():
            return stmt, dirty
        case _:
            parts = [_fenced(part, dirty, watched) for part in bodies(stmt)]
            if not parts:
                return stmt, dirty
            skipped = dirty if isinstance(stmt, One) else frozenset[Buffer]()
            return with_bodies(stmt, tuple(part for part, _ in parts)), skipped.union(*(left for _, left in parts))
