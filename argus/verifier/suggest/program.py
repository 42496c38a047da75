"""Kernels with statements put in or taken out: where candidates stand, and mistakes that they might find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.ir import Assert, Copy, For, If, Kernel, Mma, Roles, Stmt, View, bodies, walk, with_bodies

Edit = Callable[[Stmt], Sequence[Stmt]]


def edited(kernel: Kernel, edit: Edit) -> Kernel:
    """Every statement replaced by those that `edit` gives for it, inner ones first."""
    roles = None
    if kernel.roles is not None:
        (roles,) = _body((kernel.roles,), edit)
        assert isinstance(roles, Roles)
    return evolve(kernel, prologue=_body(kernel.prologue, edit), roles=roles, epilogue=_body(kernel.epilogue, edit))


def _body(body: tuple[Stmt, ...], edit: Edit) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        parts = bodies(stmt)
        inner = tuple(_body(part, edit) for part in parts)
        made += _around(stmt, stmt if inner == parts else with_bodies(stmt, inner), edit)
    return tuple(made)


def _around(old: Stmt, new: Stmt, edit: Edit) -> list[Stmt]:
    """What `edit` makes of a statement, with the bodies that it has now."""
    return [new if each is old else each for each in edit(old)]


def without_claims(kernel: Kernel) -> Kernel:
    """The kernel that asserts nothing."""
    return edited(kernel, lambda stmt: () if isinstance(stmt, Assert) else (stmt,))


def with_statements(
    kernel: Kernel, first: Sequence[Stmt], before: Mapping[Stmt, Sequence[Stmt]], last: Sequence[Stmt]
) -> Kernel:
    """The kernel with statements at its start, before some of its own, and at its end."""
    made = edited(kernel, lambda stmt: (*before.get(stmt, ()), stmt))
    return evolve(made, prologue=(*first, *made.prologue), epilogue=(*made.epilogue, *last))


# -- mistakes ----------------------------------------------------------------------------------------------------


def mistakes(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel with one mistake each, of the kinds that claims about data flow are there to find."""
    for stmt in walk(kernel.body):
        for wrong in _wrong(stmt):
            yield edited(kernel, _in_place_of(stmt, wrong))


def _in_place_of(old: Stmt, new: Stmt) -> Edit:
    """A loop or a branch keeps its body, in which candidates may stand by now."""
    return lambda stmt: (new,) if stmt is old else (stmt,)


def _wrong(stmt: Stmt) -> Iterator[Stmt]:
    match stmt:
        case Copy(source=source, target=target):
            if source.buffer.space == "global":
                yield from (evolve(stmt, source=moved) for moved in _moved(source))
            if target.buffer.space == "global":
                yield from (evolve(stmt, target=moved) for moved in _moved(target))
        case Mma(init=init):
            yield evolve(stmt, init=algebra.TRUE if init is algebra.FALSE else algebra.FALSE)
            yield evolve(stmt, init=algebra.TRUE)
        case For(start=start, stop=stop, step=step):
            yield evolve(stmt, start=algebra.add(start, step))
            yield evolve(stmt, stop=algebra.sub(stop, step))
        case If(then=then, otherwise=()):
            yield evolve(stmt, then=(), otherwise=then)
        case _:
            pass


def _moved(view: View) -> Iterator[View]:
    """One element further along each axis, and with symbols' parts of two axes exchanged."""
    for axis, place in enumerate(view.at):
        at = (*view.at[:axis], algebra.add(place, 1), *view.at[axis + 1 :])
        yield evolve(view, at=at)
