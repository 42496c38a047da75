"""One thing to be proved, where it comes from, and what its failure would mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Stmt
from argus.core.walk import symbols

Related = tuple[tuple[Stmt, str], ...]


@frozen(eq=False)
class Obligation:
    """`goal` follows from `hypotheses` and the kernel's facts.

    invariant: the id under which it is reported. what: the statement, in a reader's words.
    other: the second statement concerned. unknown: why it cannot even be asked (goal is then ignored).
    witness: named facts of a static fault, recomputed from the program (goal is then false).
    fault: the statement's opposite, as a reader would be told it; by default "not so: ...".
    measured: named quantities to be given at the sizes of a static fault.
    related: gives further statements that explain a failure, each with a remark.
    least: what a counterexample should make small, in order. compared: elements that the goal speaks of.
    given: what may be presumed: all the kernel's facts; its assumptions alone, where the goal speaks of the
    whole grid, so that a block need not exist; or nothing but the hypotheses.
    tells: a fact that the verdict should mention if the obligation is proved.
    presumed: a named assumption without which it would not hold: the verdict lists it.
    run: a run shows its failure, though the invariant is one of static faults elsewhere.
    stated: the program asserts it, so it must be reached: hypotheses that contradict each other prove nothing.
    """

    invariant: str
    what: str
    stmt: Stmt
    goal: Cond
    hypotheses: tuple[Cond, ...] = ()
    other: Stmt | None = None
    unknown: str = ""
    witness: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    measured: tuple[tuple[str, Index], ...] = ()
    related: Callable[[], Related] = tuple
    least: tuple[Index, ...] = ()
    compared: int = 0
    help: str = ""
    given: Literal["facts", "assumptions", "nothing"] = "facts"
    stated: bool = False
    tells: str = ""
    presumed: str = ""
    run: bool = False


INVARIANT_PRIORITY = (
    *("I22", "I21", "I28", "I18", "I17", "I19", "I20", "I33", "I27", "I37", "I7", "I14", "I29", "I16", "I6", "I10"),
    *("I12", "I13", "I11", "I32", "I31", "I30", "I5", "I36", "I8", "I9", "I15", "I38", "I35", "I24", "I26", "I34"),
    *("I1", "I2"),
    *("I23", "I25", "I3", "I4", "I39"),
)
"""Causes before symptoms: the order in which failures compete to be the primary diagnostic."""


def minimisation_order(cond: Cond) -> tuple[Index, ...]:
    """The symbols of a condition, in the order in which a counterexample should make them small."""
    rank = {"size": 0, "block": 1, "loop": 2}
    ordered = sorted(symbols(cond), key=lambda s: (rank.get(s.kind, 3), s.name))
    return tuple(algebra.sym(symbol) for symbol in ordered)
