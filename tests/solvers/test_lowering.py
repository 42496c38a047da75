from __future__ import annotations

import pytest

from argus.core.algebra import (
    add,
    all_of,
    any_of,
    bit_and,
    bit_or,
    eq,
    floordiv,
    le,
    minimum,
    mod,
    mul,
    pick,
    read,
    shift_left,
    sub,
    sym,
)
from argus.core.index import Cond, Coord, Index, Symbol
from argus.core.query import Query
from argus.solvers.base import definedness
from argus.solvers.smtlib.form import Inexpressible, Lowered, Product, Variable
from argus.solvers.smtlib.lowering import lower

x, y, z = (sym(Symbol(name, "fresh")) for name in "xyz")
low_bits = sym(Symbol("b", "fresh", 0, 7))


def lowered(*assertions: Cond) -> Lowered:
    result = lower(Query(assertions))
    assert isinstance(result, Lowered)
    return result


def variables(form: Lowered) -> int:
    return sum(isinstance(step, Variable) for step in form.steps)


def test_quotient_is_shared_by_division_and_remainder() -> None:
    form = lowered(le(floordiv(x, 4), y), le(mod(x, 4), y), eq(floordiv(x, 4), z))

    assert variables(form) == 3 + 1


def test_logic_is_linear_until_symbols_multiply() -> None:
    assert lowered(le(floordiv(x, 128), y)).logic == "QF_LIA"
    assert lowered(le(mul(x, y), z)).logic == "QF_NIA"
    assert lowered(le(mod(x, y), z)).logic == "QF_NIA"


def test_symbols_are_those_of_the_query() -> None:
    query = Query((le(add(x, low_bits), y),))
    form = lowered(*query.assertions)

    assert {symbol for symbol, _ in form.symbols} == set(query.symbols)
    assert all(isinstance(form.steps[position], Variable) for _, position in form.symbols)


def test_steps_name_only_earlier_steps_and_are_written_once() -> None:
    form = lowered(le(minimum(add(x, 1), y), pick(le(x, y), mul(x, z), read("t", [y]))), le(read("t", [x]), 3))

    assert len(set(form.steps)) == len(form.steps)
    assert all(position < len(form.steps) for position in form.asserted)


def test_few_bits_are_expressible_and_many_are_not() -> None:
    assert isinstance(lower(Query((le(bit_or(x, low_bits), y),))), Lowered)
    assert isinstance(lower(Query((le(bit_and(x, 0b1011), y),))), Lowered)
    result = lower(Query((le(bit_and(x, y), z),)))

    assert isinstance(result, Inexpressible)
    assert "&" in result.reason


def test_shift_by_an_unknown_amount_is_inexpressible() -> None:
    assert isinstance(lower(Query((le(shift_left(x, low_bits), y),))), Lowered)
    assert isinstance(lower(Query((le(shift_left(x, y), z),))), Inexpressible)


def test_coordinate_is_inexpressible() -> None:
    with_coordinate = read("t", [Coord(0, b"", (None, None))])

    assert isinstance(lower(Query((le(with_coordinate, x),))), Inexpressible)


@pytest.mark.share(12, among="deep expressions")
def test_deep_and_shared_expressions_lower_in_one_pass() -> None:
    deep: Index = x
    shared: Index = x
    condition = le(x, 0)
    for step in range(5000):
        deep = minimum(add(deep, step), y)
        condition = any_of([eq(y, step), all_of([condition, le(z, step)])])
    for _ in range(60):
        shared = minimum(add(shared, shared, 1), mul(shared, 3))

    form = lowered(le(deep, shared), condition)

    assert 5000 < len(form.steps) < 60_000
    assert not any(isinstance(step, Product) for step in form.steps)


def test_definedness_lists_divisors_and_amounts_innermost_first() -> None:
    inner = floordiv(x, y)
    outer = mod(z, sub(inner, 2))

    assert definedness([le(outer, 0)]) == (le(1, y), le(1, sub(inner, 2)))
    assert definedness([le(shift_left(x, low_bits), 5)]) == ()
    assert definedness([le(shift_left(x, y), 5)]) == (le(0, y),)


def test_definedness_leaves_out_what_always_holds() -> None:
    assert definedness([le(floordiv(x, 4), mod(x, add(low_bits, 1)))]) == ()
