"""Replacement of statements and other IR objects of a kernel, found by identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs
from attrs import evolve

from argus.core.algebra import sym
from argus.core.index import Index, Symbol
from argus.core.ir import For, Kernel, Roles, Stmt, bodies, with_bodies
from argus.core.ir.rewrite import rewrite_stmt

PartT = TypeVar("PartT")


def replace_stmt(body: Sequence[Stmt], old: Stmt, new: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body with statement `old` replaced by `new` at any depth; other statements stay identical."""
    made: list[Stmt] = []
    for stmt in body:
        if stmt is old:
            made += new
            continue
        inner = bodies(stmt)
        parts = tuple(replace_stmt(part, old, new) for part in inner)
        made.append(stmt if parts == inner else with_bodies(stmt, parts))
    return tuple(made)


def with_stmts(kernel: Kernel, old: Stmt, new: Sequence[Stmt]) -> Kernel:
    """The kernel with statement `old` replaced by `new` in the prologue, a role or the epilogue."""
    roles = kernel.roles
    if roles is not None:
        (changed,) = replace_stmt((roles,), old, new)
        assert isinstance(changed, Roles)
        roles = changed
    prologue, epilogue = (replace_stmt(body, old, new) for body in (kernel.prologue, kernel.epilogue))
    return evolve(kernel, prologue=prologue, roles=roles, epilogue=epilogue)


def replace_objects(node: Any, exchange: Mapping[int, Any]) -> Any:  # noqa: ANN401 reason: any part of the IR
    """A part of the IR with objects replaced. exchange: from the `id` of an object to its replacement."""
    if id(node) in exchange:
        return exchange[id(node)]
    if isinstance(node, tuple):
        parts = cast("tuple[Any, ...]", node)
        made = tuple(replace_objects(part, exchange) for part in parts)
        return made if any(a is not b for a, b in zip(made, parts, strict=True)) else parts
    if not type(node).__module__.startswith("argus.core.ir."):
        return node
    changed: dict[str, Any] = {}
    for field in attrs.fields(cast("type[Any]", type(node))):
        before = getattr(node, field.name)
        after = replace_objects(before, exchange)
        if after is not before:
            changed[field.name] = after
    return evolve(node, **changed) if changed else node


def kernel_with_objects(kernel: Kernel, exchange: Mapping[int, Any]) -> Kernel:
    """The kernel with objects replaced by identity, parameters included."""
    names = ("parameters", "prologue", "roles", "epilogue")
    return evolve(kernel, **{name: replace_objects(getattr(kernel, name), exchange) for name in names})


def objects_of(node: Any, kind: type[PartT]) -> Iterator[PartT]:  # noqa: ANN401 reason: any part of the IR
    """The objects of a class in a part of the IR, an object that is used twice as often; not those inside others."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, tuple):
        for part in cast("tuple[Any, ...]", node):
            yield from objects_of(part, kind)
    elif type(node).__module__.startswith("argus.core.ir."):
        for field in attrs.fields(cast("type[Any]", type(node))):
            yield from objects_of(getattr(node, field.name), kind)


def fresh_copies(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Copies of the statements with new identities, nested statements included."""
    return tuple(evolve(with_bodies(s, tuple(fresh_copies(part) for part in bodies(s)))) for s in body)


def substitute_symbols(body: Iterable[Stmt], names: Mapping[Symbol, Index]) -> tuple[Stmt, ...]:
    """The statements with symbols replaced, and the ranges of loop variables inferred again.

    Proofs use the range of a symbol, so it has to agree with loop bounds that mention a replaced symbol.
    """
    return tuple(_infer_ranges(rewrite_stmt(stmt, names)) for stmt in body)


def _infer_ranges(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For):
        return with_inferred_range(stmt)
    inner = bodies(stmt)
    parts = tuple(tuple(map(_infer_ranges, part)) for part in inner)
    return with_bodies(stmt, parts) if inner else stmt


def with_inferred_range(loop: For) -> For:
    """The loop with a variable whose range is inferred from its bounds and step."""
    ends = (loop.start.range[0], loop.stop.range[1]) if loop.step > 0 else (loop.stop.range[0], loop.start.range[1])
    shifts = (0, -1) if loop.step > 0 else (1, 0)
    low, high = (None if end is None else end + shift for end, shift in zip(ends, shifts, strict=True))
    fresh = Symbol(loop.symbol.name, "loop", low, high)
    if fresh == loop.symbol:
        return evolve(loop, body=tuple(map(_infer_ranges, loop.body)))
    return evolve(loop, symbol=fresh, body=substitute_symbols(loop.body, {loop.symbol: sym(fresh)}))
