"""A reduction that some registers do not take is one over a range that is empty there, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held.empty_ranges import with_empty_ranges
from argus.core.proof.values.held.tables import Tables
from argus.core.proof.values.held.terms import replaced
from argus.core.values.drawn import seeded
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Choose, Expr, ReduceOp, choose, element, expr, infinity, reduce_
from argus.core.values.rewriting import nodes

J = Symbol("j", "fresh", 0)
TAKEN, HIGH = np.array([[0, 1], [1, 0]]), np.array([[5, 2], [0, 3]])
NEUTRAL: dict[ReduceOp, Expr] = {"sum": expr(0), "product": expr(1), "max": infinity(-1), "min": infinity(1)}


def choice(tables: Tables, op: ReduceOp, otherwise: Expr, *, taken: int = 1) -> Choose:
    test = algebra.eq(tables.index(TAKEN), taken)
    some = reduce_(op, J, 0, tables.index(HIGH), element("X", algebra.sym(J)))
    return choose(test, some, otherwise) if taken else choose(test, otherwise, some)


def numbers(tables: Tables, of: Expr) -> list[float]:
    """The value in each register."""
    found: list[float] = []
    for place in np.ndindex(TAKEN.shape):
        here = {name: algebra.const(int(tables.known[name][place])) for name in tables.of(of)}
        found.append(float(Evaluation({}, seeded(0), seed=0).value(replaced(of, here))))
    return found


@pytest.mark.parametrize("op", NEUTRAL)
@pytest.mark.parametrize("taken", [0, 1])
def test_a_choice_of_what_is_neutral_becomes_a_range(op: ReduceOp, taken: int) -> None:
    tables = Tables()
    held = choice(tables, op, NEUTRAL[op], taken=taken)

    found = with_empty_ranges(held, tables)

    assert not any(isinstance(each, Choose) for each in nodes(found))
    assert numbers(tables, found) == numbers(tables, held)


@pytest.mark.parametrize(("op", "otherwise"), [("sum", expr(1)), ("product", expr(0)), ("max", expr(0))])
def test_a_choice_of_something_else_stays(op: ReduceOp, otherwise: Expr) -> None:
    tables = Tables()
    held = choice(tables, op, otherwise)

    assert with_empty_ranges(held, tables) is held
