"""The value at many elements at once is that of `Evaluation`; the bound covers roundings, and no wrong twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import inf, isfinite, nan

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.algebra import IndexLike, add, coord, le, lt, sym
from argus.core.index import Cond, Symbol
from argus.core.values import bounds
from argus.core.values.bounds import Bounded, Inputs, bounded
from argus.core.values.drawn import INTEGERS, seeded
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Element, Expr, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.rewriting import elements, free_symbols
from argus.core.walk import IntArray, evaluate, symbols
from tests.core.values.test_formulas import CASES

Exact = npt.NDArray[np.float64]
EXTENT = 16
SINGLE = 2.0**-24
ONE = (np.zeros((), np.int64),)


def assignments(of: Expr, facts: tuple[Cond, ...]) -> Iterator[Mapping[Symbol, int]]:
    """Small sizes that satisfy the facts."""
    names = sorted(free_symbols(of) | symbols(*facts), key=lambda each: each.name)
    for numbers in product((3, 2, 4, 6, 1, 0), repeat=len(names)):
        sizes = dict(zip(names, numbers, strict=True))
        ranged = all((s.low is None or s.low <= n) and (s.high is None or n <= s.high) for s, n in sizes.items())
        if ranged and all(evaluate(fact, sizes, arrays=INTEGERS) for fact in facts):
            yield sizes


def tensors_of(*formulas: Expr, seed: int) -> Mapping[str, Exact]:
    """The elements of `seeded`, in arrays that are large enough for small sizes."""
    draw, found = seeded(seed), dict[str, Exact]()
    for each in {(e.tensor, len(e.at)) for of in formulas for e in elements(of)}:
        shape = (EXTENT,) * each[1]
        found[each[0]] = np.array([float(draw(each[0], at)) for at in np.ndindex(shape)]).reshape(shape)
    return found


def number(of: Expr, sizes: Mapping[Symbol, int], tensors: Mapping[str, Exact], unit: float = SINGLE) -> Bounded:
    found = bounded(of, ONE, Inputs(sizes, tensors, {}, unit, unit))
    assert found.value.shape == found.error.shape == ()
    return found


def reads_memory(of: Expr) -> bool:
    """Whether it depends on tensors of integers, which the test has no arrays for."""
    return "Read(" in repr(of)


PLAIN = {name: case for name, case in CASES.items() if not reads_memory(case.formula) and not reads_memory(case.held)}


@pytest.mark.share(8)
@pytest.mark.parametrize("name", PLAIN)
def test_programs_are_within_the_bound_of_their_formula(name: str) -> None:
    case = PLAIN[name]
    compared = 0
    for seed, sizes in enumerate(islice(assignments(fn("add", case.held, case.formula), case.facts), 4)):
        tensors = tensors_of(case.held, case.formula, seed=seed)
        found, expected = number(case.held, sizes, tensors), number(case.formula, sizes, tensors)
        reference = float(Evaluation(sizes, seeded(seed)).value(case.formula))
        if not isfinite(reference) or not isfinite(expected.error):
            continue
        assert float(expected.value) == pytest.approx(reference, rel=1e-9, abs=1e-12)
        assert abs(found.value - expected.value) <= expected.error or found.value == expected.value
        compared += 1
    assert compared > 0 or name in NOT_COMPARED


NOT_COMPARED = frozenset(("attention, an unknown function, exp", "attention, an unknown function, exp2"))
"""Cases whose formula has no value: a function without a meaning."""


def drawn(formula: Expr, rows: int, columns: int, values: Exact, unit: float = SINGLE) -> Bounded:
    mesh: list[IntArray] = list(np.ogrid[0:rows, 0:columns])
    return bounded(formula, mesh, Inputs({N: columns}, {"X": values}, {}, unit, unit))


N = Symbol("N", "size")
J, K = Symbol("j", "fresh"), Symbol("k", "fresh")


def x(*at: IndexLike) -> Element:
    return element("X", *at)


TOP = reduce_("max", K, 0, sym(N), x(coord(0), sym(K)))
SOFTMAX = fn(
    "div", fn("exp", x(coord(0), coord(1)) - TOP), reduce_("sum", J, 0, sym(N), fn("exp", x(coord(0), sym(J)) - TOP))
)


def test_softmax_in_single_precision_is_within_the_bound() -> None:
    values = np.random.default_rng(0).standard_normal((8, 300)).astype(np.float32)
    made = drawn(SOFTMAX, 8, 300, values.astype(np.float64))
    online, below = np.full(8, -inf, np.float32), np.zeros(8, np.float32)
    for at in range(300):
        now = np.maximum(online, values[:, at])
        below, online = below * np.exp(online - now) + np.exp(values[:, at] - now), now
    found = np.exp(values - online[:, None]) / below[:, None]
    assert found.dtype == np.float32
    assert (np.abs(found - made.value) <= made.error).all()
    assert (made.error <= 1e-2 * made.value).all()
    twin = np.exp(values - online[:, None]) / np.exp(values[:, :299] - online[:, None]).sum(1, keepdims=True)
    assert (np.abs(twin - made.value) > made.error).any()


def test_a_large_reduction_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).standard_normal((4, 50))
    whole = drawn(SOFTMAX, 4, 50, values)
    monkeypatch.setattr("argus.core.values.bounds._ELEMENTS", 1000)
    parts = drawn(SOFTMAX, 4, 50, values)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-14)
    np.testing.assert_allclose(parts.error, whole.error, rtol=1e-6)


def test_ranges_and_conditions_are_those_of_each_element() -> None:
    values = np.arange(12.0).reshape(3, 4)
    below = reduce_("sum", J, coord(0), add(coord(1), 1), x(coord(0), sym(J)))
    made = drawn(below, 3, 4, values)
    expected = [[values[r, r : n + 1].sum() for n in range(4)] for r in range(3)]
    np.testing.assert_array_equal(made.value, expected)
    conditional = reduce_("product", J, 0, sym(N), x(coord(0), sym(J)), lt(sym(J), coord(1)))
    np.testing.assert_array_equal(
        drawn(conditional, 3, 4, values).value, [[values[r, :n].prod() for n in range(4)] for r in range(3)]
    )


@pytest.mark.parametrize(
    ("formula", "value", "bound"),
    [
        (fn("div", 1, x(0, 0)), inf, nan),
        (x(0, 9), nan, nan),
        (choose(le(sym(N), 2), x(0, 1), x(0, 9)), 5.0, 0.0),
        (reduce_("max", J, 3, 3, x(0, sym(J))), -inf, 0.0),
        (fn("exp", infinity(-1)), 0.0, 0.0),
        (fn("sqrt", x(0, 1) - 6), nan, nan),
        (fn("log", x(0, 0)), -inf, nan),
        (expr(3), 3.0, 0.0),
    ],
    ids=["quotient", "outside", "branch not taken", "nothing", "of -inf", "root", "logarithm", "number"],
)
def test_what_has_no_value_has_no_bound(formula: Expr, value: float, bound: float) -> None:
    found = drawn(formula, 1, 2, np.array([[0.0, 5.0]]))
    np.testing.assert_array_equal(found.value[0, 0], value)
    np.testing.assert_array_equal(np.isnan(found.error[0, 0]), np.isnan(bound))


def test_a_test_that_rounding_decides_has_no_bound() -> None:
    third = fn("mul", x(0, 0), 3) - 1
    values = np.array([[1 / 3, 0.4]])
    close = drawn(choose(compare("<", 0, third), 1, 0), 1, 1, values)
    clear = drawn(choose(compare("<", 0, fn("mul", x(0, 1), 3) - 1), 1, 0), 1, 1, values)
    assert np.isnan(close.error).all()
    assert (float(clear.value.item()), float(clear.error.item())) == (1.0, 0.0)


@pytest.mark.parametrize(("name", "factor"), [("exp2", 1.0), ("exp", 0.625)])
def test_exponentials_beyond_f32_alone_are_not_compared(
    name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program has infinity there, and what it makes of that may be no number: zero times infinity."""
    given = np.array([[100.0, 127.0, 128.0, 200.0]]) * factor
    beyond = fn(name, x(coord(0), coord(1)))
    powers = np.float64(2.0 if name == "exp2" else np.e) ** given
    with np.errstate(over="ignore"):
        of_program = powers.astype(np.float32).astype(np.float64)
    bound = drawn(beyond, 1, 4, given)
    assert np.isnan(bound.error).tolist() == np.isinf(of_program).tolist()
    assert np.isinf(of_program).any()
    held = np.isfinite(of_program)
    assert (np.abs(of_program - bound.value) <= bound.error)[held].all()
    assert (np.abs(1.001 * of_program - bound.value) > bound.error)[held].all()
    monkeypatch.setattr(bounds, "_overflows", lambda value, _: np.zeros(value.shape, np.bool_))  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]  # an array
    right = np.abs(of_program - drawn(beyond, 1, 4, given).value) <= drawn(beyond, 1, 4, given).error
    assert not right[~held].any()
