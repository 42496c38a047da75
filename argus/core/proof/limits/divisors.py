"""Every divisor that is not a number is positive (I28): solvers, interpreter and target agree only there."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import And, Bin, Cond, Const, Index, Node
from argus.core.ir import Assert, Assume, Kernel, Relation, Stmt, walk
from argus.core.proof.dataflow.timeline import Timeline, divides_safely
from argus.core.proof.obligation import Obligation
from argus.core.walk import show, topological, within


def divisor_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """From the facts that divide by numbers, or by what the program assumes to be positive, so that no divisor vouches
    for itself, and from lemmas whose own divisors are others: each of these is an obligation too.
    """
    assumed, facts = _solid(timeline.assumptions), _solid(timeline.facts)
    lemmas = timeline.lemmas
    for stmt, roots in _expressions(timeline.kernel):
        solid = assumed if stmt is timeline.kernel.body[0] else facts
        for divisor in dict.fromkeys(_divisors(roots)):
            sound = tuple(fact for fact, given in lemmas if not any(_contains(one, divisor) for one in given))
            yield _positive(stmt, divisor, (*solid, *sound))


def expression_divisor_obligations(
    stmt: Stmt, roots: tuple[Node, ...], known: tuple[Cond, ...]
) -> Iterator[Obligation]:
    """I28 for what a statement computes, from the facts that divide safely."""
    found = dict.fromkeys(_divisors(roots))
    solid = _solid(known) if found else ()
    for divisor in found:
        yield _positive(stmt, divisor, solid)


def _solid(known: tuple[Cond, ...]) -> tuple[Cond, ...]:
    """Conditions that have a meaning for all sizes for which the others without divisors hold."""
    assumed = {part for cond in known for part in (cond.parts if isinstance(cond, And) else (cond,))}
    return tuple(cond for cond in known if divides_safely(cond, assumed))


def _positive(stmt: Stmt, divisor: Index, known: tuple[Cond, ...]) -> Obligation:
    return Obligation(
        "I28",
        f"the divisor {show(divisor)} is positive",
        stmt,
        algebra.le(1, divisor),
        known,
        given="nothing",
        fault=f"the divisor {show(divisor)} may be zero",
        quantities=((show(divisor), divisor),),
        help=f"`assume({show(divisor)} >= 1)`",
    )


def _contains(term: Index, part: Index) -> bool:
    """Whether a lemma that presumes `term` to be positive would vouch for a divisor in it."""
    return part in set(within(term))


def _divisors(roots: tuple[Node, ...]) -> Iterator[Index]:
    for node in topological(roots):
        if isinstance(node, Bin) and node.op in ("//", "%") and not isinstance(node.right, Const):
            yield node.right


def _expressions(kernel: Kernel) -> Iterator[tuple[Stmt, tuple[Node, ...]]]:
    """All that is computed, but assumptions: those with such a divisor are not believed at all."""
    if kernel.body:
        yield kernel.body[0], kernel.grid
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Assume):
            related = (stmt.claim.cond,) if isinstance(stmt, Assert) and isinstance(stmt.claim, Relation) else ()
            yield stmt, (*expressions(stmt), *related)
