"""Defines a proof obligation: a goal, the statement that it belongs to, and the texts that report a failure."""

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
    """The claim that `goal` follows from `hypotheses` and the kernel's facts.

    invariant: id of the invariant that reports it. what: the goal as a sentence for the user.
    other: the second statement involved.
    unknown: why the goal cannot be put to a solver; `goal` is then ignored and the result is unknown.
    instead: what to write instead of what is unknown.
    witness: named facts of a static fault, recomputed from the program (`goal` is then false).
    fault: the negation of `what` as a sentence for the user; by default "not so: ...".
    quantities: named quantities to report at the sizes of a static fault.
    related: returns further statements that explain a failure, each with a remark.
    minimise: the terms that a counterexample should make small, in order. compared: number of elements in the goal.
    premises: the premises added to the hypotheses. "facts": all facts of the kernel. "assumptions": only its
    assumptions; for goals about the whole grid, which must not presume that a particular block exists. "nothing": none.
    note: a fact that the verdict mentions if the obligation is proved.
    open_claim: an output, and which elements of the inputs its claim does not tell apart; the verdict says it.
    presumed: a named assumption on which the proof depends; the verdict lists it.
    replayable: the interpreter can show the failure in a run, although the invariant's other faults are static.
    of_descriptor: the goal is about a tensor map, which a launch makes before any thread runs: a static fault.
    asserted: the program states the goal, so the statement must be reachable: contradictory hypotheses prove nothing.
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
    quantities: tuple[tuple[str, Index], ...] = ()
    related: Callable[[], Related] = tuple
    minimise: tuple[Index, ...] = ()
    compared: int = 0
    help: str = ""
    premises: Literal["facts", "assumptions", "nothing"] = "facts"
    asserted: bool = False
    note: str = ""
    open_claim: tuple[str, str] | None = None
    presumed: str = ""
    replayable: bool = False
    instead: str = ""
    of_descriptor: bool = False


INVARIANT_PRIORITY = (
    *(
        "I22",
        "I21",
        "I28",
        "I18",
        "I17",
        "I19",
        "I20",
        "I33",
        "I40",
        "I27",
        "I37",
        "I7",
        "I14",
        "I29",
        "I16",
        "I6",
        "I10",
    ),
    *("I12", "I13", "I11", "I32", "I31", "I30", "I5", "I36", "I8", "I9", "I15", "I38", "I24", "I26", "I35", "I34"),
    *("I1", "I2"),
    *("I23", "I25", "I3", "I4", "I39"),
)
"""Invariants in the order in which a failure becomes the primary diagnostic: causes before symptoms."""


def minimisation_order(cond: Cond) -> tuple[Index, ...]:
    """The symbols of a condition in the order in which a counterexample should minimise them."""
    rank = {"size": 0, "block": 1, "loop": 2}
    ordered = sorted(symbols(cond), key=lambda s: (rank.get(s.kind, 3), s.name))
    return tuple(algebra.sym(symbol) for symbol in ordered)
