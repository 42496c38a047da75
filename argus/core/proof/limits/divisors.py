"""Obligations that every symbolic divisor is positive (I28): only then do solver, interpreter and target agree."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import And, Bin, Cond, Const, Index, Node
from argus.core.index_text import show
from argus.core.ir import Assert, Assume, For, If, Kernel, Relation, Stmt, bodies
from argus.core.proof.dataflow.timeline import Loop, Timeline, divides_safely
from argus.core.proof.obligation import Obligation
from argus.core.walk import topological, within


def divisor_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """I28 for every divisor of the kernel; no proof presumes the divisor that it is about.

    Premises are the facts, those of the loops and branches around a statement included, that divide only by numbers or
    by terms that the program assumes to be positive, and the lemmas whose premises do not contain the divisor; each of
    those premises has an obligation of its own.
    """
    assumed, facts = _safely_dividing(timeline.assumptions), timeline.facts
    lemmas = timeline.lemmas
    for stmt, roots, around in _expressions(timeline.kernel):
        premises = assumed if around is None else _safely_dividing((*facts, *around))
        for divisor in dict.fromkeys(_divisors(roots)):
            sound = tuple(fact for fact, presumed in lemmas if not any(_contains(one, divisor) for one in presumed))
            yield _positive_obligation(stmt, divisor, (*premises, *sound))


def expression_divisor_obligations(
    stmt: Stmt, roots: tuple[Node, ...], known: tuple[Cond, ...]
) -> Iterator[Obligation]:
    """I28 for the divisors in expressions of a statement, from those facts in `known` that divide safely."""
    found = dict.fromkeys(_divisors(roots))
    premises = _safely_dividing(known) if found else ()
    for divisor in found:
        yield _positive_obligation(stmt, divisor, premises)


def _safely_dividing(known: tuple[Cond, ...]) -> tuple[Cond, ...]:
    """The conditions that are defined at all sizes at which the division-free conditions hold."""
    assumed = {part for cond in known for part in (cond.parts if isinstance(cond, And) else (cond,))}
    return tuple(cond for cond in known if divides_safely(cond, assumed))


def _positive_obligation(stmt: Stmt, divisor: Index, known: tuple[Cond, ...]) -> Obligation:
    return Obligation(
        "I28",
        f"the divisor {show(divisor)} is positive",
        stmt,
        algebra.le(1, divisor),
        known,
        premises="nothing",
        fault=f"the divisor {show(divisor)} may be zero",
        quantities=((show(divisor), divisor),),
        help=f"`assume({show(divisor)} >= 1)`",
    )


def _contains(term: Index, part: Index) -> bool:
    """Whether `part` occurs in `term`: a lemma that presumes `term` positive must not prove `part` positive."""
    return part in set(within(term))


def _divisors(roots: tuple[Node, ...]) -> Iterator[Index]:
    for node in topological(roots):
        if isinstance(node, Bin) and node.op in ("//", "%") and not isinstance(node.right, Const):
            yield node.right


def _expressions(kernel: Kernel) -> Iterator[tuple[Stmt, tuple[Node, ...], tuple[Cond, ...] | None]]:
    """All computed expressions by statement, without assumptions: one that divides unsafely is never a premise.

    The last part is what holds around a statement, of loops and branches; None for the grid, which no block computes.
    """
    if kernel.body:
        yield kernel.body[0], kernel.grid, None
    for stmt, around in _with_surroundings(kernel.body, ()):
        if not isinstance(stmt, Assume):
            related = (stmt.claim.cond,) if isinstance(stmt, Assert) and isinstance(stmt.claim, Relation) else ()
            yield stmt, (*expressions(stmt), *related), around


def _with_surroundings(body: tuple[Stmt, ...], around: tuple[Cond, ...]) -> Iterator[tuple[Stmt, tuple[Cond, ...]]]:
    """Every statement of the body in program order, with the facts of the loops and branches that it lies in."""
    for stmt in body:
        yield stmt, around
        match stmt:
            case For(body=inner):
                yield from _with_surroundings(inner, (*around, *Loop(stmt).facts))
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from _with_surroundings(then, (*around, cond))
                yield from _with_surroundings(otherwise, (*around, algebra.negate(cond)))
            case _:
                for inner in bodies(stmt):
                    yield from _with_surroundings(inner, around)
