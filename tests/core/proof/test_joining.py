"""Which cases of what cells hold are one, and which must stay apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argus.core import algebra
from argus.core.algebra import FALSE, TRUE, add, eq, le, lt, negate, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.join import merge_pieces
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.values.content import BoolArray, Bottom, Data, Inside, Piece, Value
from argus.core.query import Unsat
from tests.core.proof.queries import session

TRIP, SIZE = Symbol("k", "loop", 0, 100), Symbol("K", "size", 1, 100)
SHAPE = (4, 2)
FIRST, LATER = eq(sym(TRIP), 0), negate(eq(sym(TRIP), 0))
ALL = np.ones(SHAPE, np.bool_)
UPPER = np.arange(8).reshape(SHAPE) < 4


def holds(context: Sequence[Cond], goal: Cond) -> bool:
    return isinstance(session().prove(context, goal), Unsat)


def data(k: Index, *, step: int = 1, fill: float = 0.0, extent: Index | None = None, form: str = "a") -> Data:
    place = Separable(k, step * np.arange(8, dtype=np.int64).reshape(SHAPE))
    inside = () if extent is None else (Inside(place, extent),)
    return Data({"k": place}, inside, fill, form=form)


def two(one: Value, other: Value, masks: tuple[BoolArray, BoolArray] = (ALL, ALL)) -> int:
    """How many cases are left of two: the first iteration's and that of all others."""
    found = merge_pieces((Piece(masks[0], FIRST, one), Piece(masks[1], LATER, other)), (), holds)
    assert all(piece.mask.any() for piece in found)
    return len(found)


def test_one_formula_in_two_cases_is_one_case_without_a_condition() -> None:
    (piece,) = merge_pieces((Piece(ALL, FIRST, data(sym(TRIP))), Piece(ALL, LATER, data(sym(TRIP)))), (), holds)
    assert piece.guard is TRUE
    assert piece.mask.all()


def test_formulas_that_agree_only_where_the_case_holds_are_joined() -> None:
    assert two(data(algebra.const(0)), data(sym(TRIP))) == 1
    (piece,) = merge_pieces((Piece(ALL, FIRST, data(algebra.const(0))), Piece(ALL, LATER, data(sym(TRIP)))), (), holds)
    assert isinstance(piece.value, Data)
    assert piece.value.record["k"].table.tolist() == np.arange(8).reshape(SHAPE).tolist()
    assert holds((FIRST,), eq(_base(piece.value), 0))
    assert holds((LATER,), eq(_base(piece.value), sym(TRIP)))


def _base(value: Data) -> Index:
    place = value.record["k"]
    assert isinstance(place, Separable)
    return place.base


def test_values_that_differ_stay_cases() -> None:
    here = data(sym(TRIP))
    assert two(here, data(add(sym(TRIP), 1))) == 2
    assert two(here, data(sym(TRIP), step=2)) == 2
    assert two(here, data(sym(TRIP), fill=1.0)) == 2
    assert two(here, data(sym(TRIP), form="max(a, 0)")) == 2
    assert two(here, data(sym(TRIP), extent=sym(SIZE))) == 2
    assert two(data(sym(TRIP), extent=sym(SIZE)), data(sym(TRIP), extent=add(sym(SIZE), 1))) == 2
    assert two(here, Bottom()) == 2


def test_elements_of_one_case_are_one_table_only_under_one_symbolic_part() -> None:
    def case(one: Data, other: Data) -> int:
        return len(merge_pieces((Piece(UPPER, TRUE, one), Piece(~UPPER, TRUE, other)), (), holds))

    assert case(data(sym(TRIP)), data(sym(TRIP), step=3)) == 1
    assert case(data(sym(TRIP)), data(sym(SIZE))) == 2
    assert case(data(sym(TRIP)), data(sym(TRIP), fill=2.0)) == 2


def test_a_condition_that_the_context_settles_is_dropped() -> None:
    here = Piece(ALL, lt(sym(TRIP), 5), data(sym(TRIP)))
    assert merge_pieces((here,), (le(sym(TRIP), 3),), holds)[0].guard is TRUE
    assert merge_pieces((here,), (le(sym(TRIP), 5),), holds)[0].guard is here.guard
    assert merge_pieces((Piece(ALL, FALSE, data(sym(TRIP))),), (), holds)[0].guard is FALSE
