"""Rewrites kernels: inserts candidate claims, removes claims, and makes the mutants that claims should detect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.ir import Assert, Copy, For, If, Kernel, Mma, Roles, Stmt, View, bodies, walk, with_bodies

Edit = Callable[[Stmt], Sequence[Stmt]]


def rewritten(kernel: Kernel, edit: Edit) -> Kernel:
    """The kernel with every statement replaced by those that `edit` returns for it, inner statements first."""
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
    """The statements that `edit` returns for `old`, where `new`, with rewritten bodies, takes the place of `old`."""
    return [new if each is old else each for each in edit(old)]


def without_claims(kernel: Kernel) -> Kernel:
    """The kernel without its assertions."""
    return rewritten(kernel, lambda stmt: () if isinstance(stmt, Assert) else (stmt,))


def with_statements(
    kernel: Kernel, first: Sequence[Stmt], before: Mapping[Stmt, Sequence[Stmt]], last: Sequence[Stmt]
) -> Kernel:
    """The kernel with statements added at its start, before some of its own, and at its end."""
    made = rewritten(kernel, lambda stmt: (*before.get(stmt, ()), stmt))
    return evolve(made, prologue=(*first, *made.prologue), epilogue=(*made.epilogue, *last))


# -- mutants -----------------------------------------------------------------------------------------------------


def mutants(kernel: Kernel) -> Iterator[Kernel]:
    """Mutants of the kernel with one mistake each, of the kinds that claims about data flow detect."""
    for stmt in walk(kernel.body):
        for wrong in _wrong(stmt):
            yield rewritten(kernel, _in_place_of(stmt, wrong))


def _in_place_of(old: Stmt, new: Stmt) -> Edit:
    """Replaces a statement; a loop or a branch keeps its current body, which may contain candidates."""
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
    """The view shifted by one element along each axis."""
    for axis, place in enumerate(view.at):
        at = (*view.at[:axis], algebra.add(place, 1), *view.at[axis + 1 :])
        yield evolve(view, at=at)
