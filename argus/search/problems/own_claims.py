"""What a written kernel claims beside its problem: names of tags and assertions of the author's own choice.

The problem's claim is proved in the kernel without them, so that they cannot weaken it, whatever they state; they are
checked in the kernel without the problem's claim.
"""

from __future__ import annotations

from attrs import evolve

from argus.core.ir import (
    Assert,
    Claim,
    Covers,
    Distinct,
    Equal,
    Equals,
    Kernel,
    Order,
    Products,
    Relation,
    Stmt,
    Tag,
    TagOf,
    WrittenOnce,
    walk,
)
from argus.core.ir.surgery import with_stmts


def own_names(kernel: Kernel, known: frozenset[str] | None = None) -> frozenset[str]:
    """Names of tags that the problem does not have.

    known: its names; None for those that the kernel's claims about whole sums and outputs use, which are checked.
    """
    body = tuple(walk(kernel.body))
    named = {name for stmt in body if isinstance(stmt, Tag) for name, _ in stmt.names}
    return frozenset(named - (_claimed_names(body) if known is None else known))


def _claimed_names(body: tuple[Stmt, ...]) -> frozenset[str]:
    claims = [stmt.claim for stmt in body if isinstance(stmt, Assert)]
    written = {name for each in claims if isinstance(each, WrittenOnce) for name, _ in each.record}
    return frozenset(written | {each.of.name for each in claims if isinstance(each, Covers)})


def without_own_claims(kernel: Kernel, own: frozenset[str]) -> Kernel:
    """The kernel without names of tags, and without the assertions that name one of them."""
    for stmt in tuple(walk(kernel.body)) if own else ():
        found = _kept(stmt, own)
        if found is not stmt:
            kernel = with_stmts(kernel, stmt, [] if found is None else [found])
    return kernel


def own_claims_alone(kernel: Kernel) -> Kernel:
    """The kernel without claims about whole sums and outputs, which are the problem's."""
    for stmt in tuple(walk(kernel.body)):
        if isinstance(stmt, Assert) and isinstance(stmt.claim, WrittenOnce | Covers | Products | Equals):
            kernel = with_stmts(kernel, stmt, [])
    return kernel


def _kept(stmt: Stmt, own: frozenset[str]) -> Stmt | None:
    match stmt:
        case Tag(names=names):
            kept = tuple((name, index) for name, index in names if name not in own)
            return stmt if kept == names else evolve(stmt, names=kept) if kept else None
        case Assert(claim=claim):
            found = _without(claim, own)
            return stmt if found is claim else None if found is None else evolve(stmt, claim=found)
        case _:
            return stmt


def _without(claim: Claim, own: frozenset[str]) -> Claim | None:
    """The claim without components of these names; None if it is about one of them."""
    match claim:
        case WrittenOnce(record=record):
            kept = tuple((name, index) for name, index in record if name not in own)
            return claim if kept == record else evolve(claim, record=kept)
        case Equal() | Distinct() | Relation() | Covers() | Order():
            return None if {each.name for each in _components(claim)} & own else claim
        case Products() | Equals():
            return claim


def _components(claim: Equal | Distinct | Relation | Covers | Order) -> tuple[TagOf, ...]:
    match claim:
        case Equal(left, right):
            return left, right
        case Distinct(components):
            return components
        case Relation(names):
            return tuple(tag for _, tag in names)
        case Covers(of=of) | Order(of=of):
            return (of,)
