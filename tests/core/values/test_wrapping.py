"""Integers modulo 2^n: values that wrap around to the same have one normal form, and others have not."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.values.drawn import Drawn
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, choose, element, expr, fn
from argus.core.values.normal import normal_form
from argus.core.wrapping import BITS, is_at_an_end, wrapped, wrapped_exactly

SYMBOLS = x, z = Symbol("x", "size"), Symbol("z", "size")
X, Z = (expr(algebra.sym(each)) for each in SYMBOLS)
R = element("R", 0)
POSITIVE = algebra.lt(0, algebra.sym(x))
ENDS = (0, 1, 5, (1 << 31) - 1, 1 << 31, (1 << 32) + 7, (1 << 62) + 3, (1 << 63) - 1)


def in_64(of: Expr | int) -> Expr:
    return fn("wrapped i64", of)


def in_32(of: Expr | int) -> Expr:
    return fn("wrapped i32", of)


ALIKE: Mapping[str, tuple[Expr, Expr]] = {
    "a sum of sums": (in_64(in_64(X + 1) + Z), in_64(X + Z + 1)),
    "a product of sums": (in_64(in_64(X + 1) * in_64(X - Z)), in_64(X * X - X * Z + X - Z)),
    "a square": (in_64(in_64(X + Z) * in_64(X + Z)), in_64(X * X + 2 * X * Z + Z * Z)),
    "a term that cancels": (in_64(in_64(X + Z) - Z), in_64(X)),
    "narrowed": (in_32(in_64(X * Z) - 3), in_32(X * Z - 3)),
    "a number": (in_64(expr(1 << 63)), expr(-(1 << 63))),
    "a choice": (in_64(choose(POSITIVE, in_64(X + 1), 2) + X), in_64(choose(POSITIVE, X + 1, 2) + X)),
}
UNLIKE: Mapping[str, tuple[Expr, Expr]] = {
    "not wrapped": (in_64(X + 1), X + 1),
    "wrapped in fewer bits": (in_64(in_32(X + 1) * 2), in_64(X * 2 + 2)),
    "half of it": (in_64(in_64(X + 1) * Fraction(1, 2)), in_64((X + 1) * Fraction(1, 2))),
    "times a number that is no integer": (in_64(in_64(X + 1) * R), in_64((X + 1) * R)),
    "an extremum": (in_64(fn("max", in_64(X + 1), Z)), in_64(fn("max", X + 1, Z))),
}


@pytest.mark.parametrize("name", ALIKE)
def test_equal_integers_have_one_form(name: str) -> None:
    one, other = ALIKE[name]
    a, b = normal_form(one), normal_form(other)
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    assert a.value == b.value
    for at in product(ENDS, repeat=2):
        assert value_of(one, at) == value_of(other, at), at


@pytest.mark.parametrize("name", UNLIKE)
def test_other_integers_have_another(name: str) -> None:
    one, other = UNLIKE[name]
    a, b = normal_form(one), normal_form(other)
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    assert a.value != b.value
    assert any(value_of(one, at) != value_of(other, at) for at in product(ENDS, repeat=2))


def value_of(of: Expr, at: tuple[int, ...]) -> object:
    return Evaluation(dict(zip(SYMBOLS, at, strict=True)), Drawn(1, 1, 9, 4), exact=True).value(of)


@pytest.mark.parametrize("bits", sorted(set(BITS.values())))
def test_numbers_wrap_around_as_numpy_does(bits: int) -> None:
    kind = np.dtype(f"int{bits}")
    for value in (*(sign * each for each in ENDS for sign in (1, -1)), 1 << (bits - 1), -(1 << (bits - 1)) - 1):
        exact = wrapped_exactly(Fraction(value), bits)
        assert exact == int(np.array(value % (1 << bits), np.uint64).astype(kind))
        found = wrapped(np.float64(value), bits)
        assert np.isnan(found) if abs(value) >= 1 << 53 else found == exact


def test_an_end_of_a_type_is_none_that_rounding_may_cross() -> None:
    assert is_at_an_end(127.0, 8)
    assert is_at_an_end(-129.0, 8)
    assert not is_at_an_end(125.0, 8)
    assert not is_at_an_end(2.0**40, 64)
    assert is_at_an_end(2.0**54, 64)
