"""Random pairs of a formula and another form of the same value, and one-edit wrong twins of these forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from argus.core.index import Cond
from argus.core.query import Budget, Unsat
from argus.core.values.conditions import Integers
from argus.core.values.equality import Answer, Different, Equal, Undecided, equal
from argus.core.values.expr import Expr
from argus.core.values.rewriting import written_size
from argus.solvers.base import Solver
from property_tests.small.choosing import Choose
from property_tests.values.edits import EDITS
from property_tests.values.forms import EVERYWHERE, FORMS
from property_tests.values.formulas import FAMILIES
from property_tests.values.loops import LOOPS
from property_tests.values.numbers import differ
from property_tests.values.online import ONLINE
from property_tests.values.parts import Change, changed, everywhere, places

TRANSFORMATIONS: Mapping[str, Callable[[Choose], Change]] = {**LOOPS, **ONLINE, **FORMS}
_ATTEMPTS = 600
_LARGEST = 400
"""Parts of an expression, written out."""


@frozen
class Pair:
    """What is held, by these transformations of the formula."""

    family: str
    formula: Expr
    facts: tuple[Cond, ...]
    held: Expr
    names: tuple[str, ...]


def draw(choose: Choose, first: str | None = None) -> Pair:
    """One to three transformations of a formula; the first is the named one, if any."""
    first = first or choose(tuple(TRANSFORMATIONS))
    for _ in range(_ATTEMPTS):
        family = choose(tuple(FAMILIES))
        formula = FAMILIES[family](choose)
        names = [first]
        names += [choose(tuple(TRANSFORMATIONS)) for _ in range(choose((0, 0, 1, 2)))]
        held, used = formula.value, list[str]()
        for name in names:
            found = _at_a_place(held, TRANSFORMATIONS[name](choose), choose, all_=name in EVERYWHERE)
            if found is not None and found is not held and written_size(found) <= _LARGEST:
                held, used = found, [*used, name]
            elif not used:
                break
        if used and held is not formula.value:
            return Pair(family, formula.value, formula.facts, held, tuple(dict.fromkeys(used)))
    raise AssertionError(f"no formula for {first}")


def _at_a_place(of: Expr, change: Change, choose: Choose, *, all_: bool) -> Expr | None:
    if all_ and choose((True, True, False)):
        return everywhere(of, change)
    count = places(of, change)
    return changed(of, change, choose(range(count))) if count else None


@frozen
class Twin:
    """A held value with one edit, by which its numbers are others."""

    held: Expr
    edit: str


def wrong(choose: Choose, of: Pair) -> Twin | None:
    """A wrong twin of the pair's held value: one whose numbers differ from the formula's. None if none is found."""
    for _ in range(12):
        edit = choose(tuple(EDITS))
        held = _at_a_place(of.held, EDITS[edit](choose), choose, all_=False)
        if held is not None and differ(held, of.formula, of.facts):
            return Twin(held, edit)
    return None


def answer(held: Expr, formula: Expr, facts: tuple[Cond, ...], solver: Solver) -> Answer:
    """The answer of `equal`, conditions on integers put to the solver."""
    found = equal(held, formula, facts)
    if isinstance(found, Undecided) and not found.reason:
        left = frozenset(each for each in found.conditions if not _answered(each, solver))
        return Undecided(left) if left else Equal(found.conditions)
    return found


def _answered(condition: object, solver: Solver) -> bool:
    return isinstance(condition, Integers) and isinstance(solver.check(condition.query, Budget.about(1.0)), Unsat)


def outcome(found: Answer) -> str:
    """One word for the answer."""
    match found:
        case Equal():
            return "proved"
        case Different():
            return "refuted"
        case Undecided():
            return "unknown"
