"""Unknown numbers in place of parts: functions of the variables that the parts depend on."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held.parts import Parts
from argus.core.values.expr import Element, Expr, Reduce, element, expr, reduce_
from argus.core.values.rewriting import free_symbols

J, K, L = (Symbol(name, "fresh", 0) for name in "jkl")
N = algebra.sym(Symbol("N", "size", 1))


def greatest(row: Symbol, over: Symbol) -> Expr:
    return reduce_("max", over, 0, N, element("X", algebra.sym(row), algebra.sym(over)))


def is_maximum(of: Expr) -> bool:
    return isinstance(of, Reduce) and of.op == "max"


def test_a_part_depends_on_what_is_bound_around_it() -> None:
    found = Parts("part", is_maximum).of(reduce_("sum", J, 0, N, greatest(J, K)))

    assert isinstance(found, Reduce)
    assert isinstance(found.body, Element)
    assert free_symbols(found.body) == {J}


def test_parts_that_differ_in_names_alone_are_one() -> None:
    parts = Parts("part", is_maximum)

    assert parts.of(greatest(J, K)) is parts.of(greatest(J, L))
    one, other = parts.of(greatest(J, K)), parts.of(greatest(L, K))
    assert isinstance(one, Element)
    assert isinstance(other, Element)
    assert one.tensor == other.tensor
    assert (free_symbols(one), free_symbols(other)) == ({J}, {L})


def test_other_parts_are_other_numbers() -> None:
    parts = Parts("part", is_maximum)

    assert parts.of(greatest(J, K)) is not parts.of(reduce_("max", K, 0, N, element("Y", algebra.sym(K))))
    assert parts.of(expr(3)) is expr(3)
