"""Property: the constructors rewrite by integer identities: an expression has the value of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.walk import evaluate, substitute
from property_tests.depth import examples

pytestmark = pytest.mark.share(3, among="algebra")

# The constructors use ranges as facts: unbounded, signed, non-negative, positive, and a single value.
SYMBOLS = (
    Symbol("a", "fresh"),
    Symbol("b", "fresh", -20, 13),
    Symbol("c", "fresh", 0, 40),
    Symbol("d", "fresh", 1, 9),
    Symbol("e", "fresh", -3, -1),
    Symbol("f", "fresh", 6, 6),
)
Env = Mapping[Symbol, int]
Meaning = Callable[[Env], int]


@frozen
class Pair:
    """An expression as the constructors build it, and its value computed by Python."""

    built: Index
    meaning: Meaning


@frozen
class Claim:
    built: Cond
    meaning: Callable[[Env], bool]


def environments() -> SearchStrategy[Env]:
    values = {
        symbol: st.integers(
            -10_000 if symbol.low is None else symbol.low, 10_000 if symbol.high is None else symbol.high
        )
        for symbol in SYMBOLS
    }
    return st.fixed_dictionaries(values)


def number(value: int) -> Pair:
    return Pair(algebra.const(value), lambda _: value)


def symbol(of: Symbol) -> Pair:
    return Pair(algebra.sym(of), lambda env: env[of])


def both(make: Callable[[Index, Index], Index], compute: Callable[[int, int], int]) -> Callable[[Pair, Pair], Pair]:
    return lambda x, y: Pair(make(x.built, y.built), lambda env: compute(x.meaning(env), y.meaning(env)))


def chosen(claim: Claim, x: Pair, y: Pair) -> Pair:
    built = algebra.pick(claim.built, x.built, y.built)
    return Pair(built, lambda env: x.meaning(env) if claim.meaning(env) else y.meaning(env))


ANY_OPERANDS = (
    both(algebra.add, lambda x, y: x + y),
    both(algebra.sub, lambda x, y: x - y),
    both(algebra.mul, lambda x, y: x * y),
    both(algebra.minimum, min),
    both(algebra.maximum, max),
    both(algebra.bit_and, lambda x, y: x & y),
    both(algebra.bit_or, lambda x, y: x | y),
    both(algebra.bit_xor, lambda x, y: x ^ y),
)
DIVISIONS = (
    both(algebra.floordiv, lambda x, y: x // y),
    both(algebra.mod, lambda x, y: x % y),
    both(algebra.ceil_div, lambda x, y: -(-x // y)),
)
SHIFTS = (both(algebra.shift_left, lambda x, y: x << y), both(algebra.shift_right, lambda x, y: x >> y))
RELATIONS: tuple[tuple[Callable[[Index, Index], Cond], Callable[[int, int], bool]], ...] = (
    (algebra.le, lambda x, y: x <= y),
    (algebra.lt, lambda x, y: x < y),
    (algebra.eq, lambda x, y: x == y),
)


def comparisons(pairs: SearchStrategy[Pair]) -> SearchStrategy[Claim]:
    def compare(relation: int, x: Pair, y: Pair) -> Claim:
        make, compute = RELATIONS[relation]
        return Claim(make(x.built, y.built), lambda env: compute(x.meaning(env), y.meaning(env)))

    return st.builds(compare, st.integers(0, len(RELATIONS) - 1), pairs, pairs)


def extend(inner: SearchStrategy[Pair]) -> SearchStrategy[Pair]:
    nonzero = st.integers(-9, 9).filter(bool) | st.sampled_from((16, 32, 64, 128))
    # ceil_div(x, y) is (x + y - 1) // y, which rounds up for positive divisors only.
    positive = nonzero.map(abs).map(number) | st.sampled_from((SYMBOLS[3], SYMBOLS[5])).map(symbol)
    divide, modulo, ceiling = DIVISIONS
    return st.one_of(
        st.one_of([st.builds(operator, inner, inner) for operator in ANY_OPERANDS]),
        st.one_of([st.builds(operator, inner, nonzero.map(number)) for operator in (divide, modulo)]),
        st.one_of([st.builds(operator, inner, positive) for operator in (divide, modulo, ceiling)]),
        st.one_of([st.builds(operator, inner, st.integers(0, 7).map(number)) for operator in SHIFTS]),
        st.builds(chosen, comparisons(inner), inner, inner),
    )


def pairs() -> SearchStrategy[Pair]:
    leaves = st.sampled_from(SYMBOLS).map(symbol) | st.integers(-130, 130).map(number)
    return st.recursive(leaves, extend, max_leaves=10)


def claims() -> SearchStrategy[Claim]:
    def junction(every: bool, parts: list[Claim]) -> Claim:
        make, compute = (algebra.all_of, all) if every else (algebra.any_of, any)
        return Claim(make([part.built for part in parts]), lambda env: compute(part.meaning(env) for part in parts))

    def opposite(part: Claim) -> Claim:
        return Claim(algebra.negate(part.built), lambda env: not part.meaning(env))

    def deeper(inner: SearchStrategy[Claim]) -> SearchStrategy[Claim]:
        return st.builds(junction, st.booleans(), st.lists(inner, max_size=3)) | inner.map(opposite)

    return st.recursive(comparisons(pairs()), deeper, max_leaves=6)


@settings(max_examples=examples(600))
@given(pairs(), environments())
def test_an_expression_means_what_was_written(pair: Pair, env: Env) -> None:
    assert evaluate(pair.built, env) == pair.meaning(env)


@settings(max_examples=examples(300))
@given(claims(), environments())
def test_a_condition_means_what_was_written(claim: Claim, env: Env) -> None:
    assert bool(evaluate(claim.built, env)) == claim.meaning(env)


@settings(max_examples=examples(300))
@given(pairs(), environments())
def test_the_range_encloses_the_value(pair: Pair, env: Env) -> None:
    low, high = pair.built.range
    value = evaluate(pair.built, env)
    assert isinstance(value, int)
    assert low is None or low <= value
    assert high is None or value <= high


@settings(max_examples=examples(200))
@given(pairs(), environments())
def test_substitution_is_evaluation(pair: Pair, env: Env) -> None:
    closed = substitute(pair.built, {of: algebra.const(value) for of, value in env.items()})
    assert closed is algebra.const(pair.meaning(env))


@settings(max_examples=examples(200))
@given(pairs())
def test_normal_forms_are_fixed(pair: Pair) -> None:
    assert substitute(pair.built, {}) is pair.built


@settings(max_examples=examples(200))
@given(pairs(), pairs(), pairs())
def test_sums_and_products_have_one_form(x: Pair, y: Pair, z: Pair) -> None:
    a, b, c = x.built, y.built, z.built
    assert algebra.add(a, b, c) is algebra.add(c, algebra.add(b, a))
    assert algebra.sub(algebra.add(a, b), b) is a
    assert algebra.mul(a, b) is algebra.mul(b, a)
    assert algebra.neg(algebra.neg(a)) is a


@settings(max_examples=examples(300))
@given(pairs() | claims(), environments())
def test_the_text_is_faithful(shown: Pair | Claim, env: Env) -> None:
    text = show(shown.built)
    names = {of.name: value for of, value in env.items()}
    # The text of an expression is a Python expression over the same names.
    value = eval(text, {"min": min, "max": max, "true": True, "false": False}, names)  # noqa: S307 reason: our own text
    assert value == shown.meaning(env)
