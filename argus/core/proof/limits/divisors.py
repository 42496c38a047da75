"""Obligations that every symbolic divisor is positive (I28): only then do solver, interpreter and target agree."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import And, Bin, Cond, Const, Index, Node
from argus.core.index_text import show
from argus.core.ir import Assert, Assume, Kernel, Relation, Stmt, walk
from argus.core.proof.dataflow.timeline import Timeline, divides_safely
from argus.core.proof.obligation import Obligation
from argus.core.walk import topological, within


def divisor_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """I28 for every divisor of the kernel; no proof presumes the divisor that it is about.

    Premises are the facts that divide only by numbers or by terms that the program assumes to be positive, and the
    lemmas whose premises do not contain the divisor; each of those premises has an obligation of its own.
    """
    assumed, facts = _safely_dividing(timeline.assumptions), _safely_dividing(timeline.facts)
    lemmas = timeline.lemmas
    for stmt, roots in _expressions(timeline.kernel):
        premises = assumed if stmt is timeline.kernel.body[0] else facts
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


def _expressions(kernel: Kernel) -> Iterator[tuple[Stmt, tuple[Node, ...]]]:
    """All computed expressions by statement, without assumptions: one that divides unsafely is never a premise."""
    if kernel.body:
        yield kernel.body[0], kernel.grid
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Assume):
            related = (stmt.claim.cond,) if isinstance(stmt, Assert) and isinstance(stmt.claim, Relation) else ()
            yield stmt, (*expressions(stmt), *related)
