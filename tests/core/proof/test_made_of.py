"""Tags, sets and padding read off expressions, and how often a number is counted."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import inf, log

import pytest

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.values.alike_terms import not_said_by_tags
from argus.core.proof.values.complete_sets import complete_sets
from argus.core.proof.values.content import COUNTED
from argus.core.proof.values.made_of import Reading, single
from argus.core.proof.values.named_parts import Part
from argus.core.proof.values.part_counts import count
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.walk import evaluate

TAGS: Mapping[str, tuple[tuple[str, Index], ...]] = {
    "A": (("m", algebra.coord(0)), ("k", algebra.coord(1))),
    "B": (("n", algebra.coord(0)), ("k", algebra.coord(1))),
    "X": (("n", algebra.coord(0)),),
    "Z": (("n", algebra.coord(0)),),
}
M, N, J, STEP = (Symbol(name, "fresh", 0) for name in "mnji")
K = Symbol("K", "size", 0)
m, n, j, i, k = (algebra.sym(each) for each in (M, N, J, STEP, K))


def never(*_: Part) -> bool:
    return False


def reading() -> Reading:
    return Reading(TAGS, never)


def product(at: Index, other: Index | None = None) -> Expr:
    return fn("mul", element("A", m, at), element("B", n, at if other is None else other))


def total(body: Expr, variable: Symbol, high: Index | int) -> Expr:
    return reduce_("sum", variable, 0, high, body)


def counted(of: Expr, name: str, numbers: range, size: int = 10) -> list[int] | None:
    """How often each number is in the set of a name, with K = size."""
    made = reading().of(of)
    found = count(made.names[name], made.op or "sum")
    if found is None:
        return None
    return [int(evaluate(found, {COUNTED: x, K: size, M: 0, N: 0})) for x in numbers]


SUMS: dict[str, tuple[Expr, list[int]]] = {
    "each once": (total(product(j), J, k), [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    "in steps of 4": (
        total(total(product(algebra.add(algebra.mul(j, 4), i)), STEP, 4), J, algebra.ceil_div(k, 4)),
        [0, *([1] * 11)],
    ),
    "in strides, as many as there are from a first one on": (
        total(total(product(algebra.add(algebra.mul(j, 4), i)), J, algebra.ceil_div(algebra.sub(k, i), 4)), STEP, 4),
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
    ),
    "backwards": (
        total(product(algebra.sub(algebra.sub(k, 1), j)), J, k),
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
    ),
    "twice": (total(total(product(j), J, k), STEP, 2), [0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0]),
    "every other": (total(product(algebra.mul(j, 2)), J, 4), [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0]),
    "added to itself": (
        fn("add", total(product(j), J, 3), total(product(j), J, 3)),
        [0, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    ),
    "added to itself in one case": (
        choose(algebra.lt(m, 1), fn("add", total(product(j), J, 3), total(product(j), J, 3)), 0),
        [0, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    ),
    "where a condition holds": (
        total(choose(algebra.lt(j, 5), product(j), 0), J, k),
        [0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_how_often_each_number_is_summed(name: str) -> None:
    of, expected = SUMS[name]
    assert counted(of, "k", range(-1, 11)) == expected


@pytest.mark.parametrize(("size", "times"), [(0, 0), (1, 1), (5, 1)])
def test_what_the_first_iteration_adds_is_there_if_there_is_one(size: int, times: int) -> None:
    of = total(choose(algebra.lt(j, 1), total(product(i), STEP, 4), 0), J, k)
    assert counted(of, "k", range(-1, 5), size) == [0, times, times, times, times, 0]


def test_what_an_unknown_iteration_adds_has_no_count() -> None:
    some = algebra.any_of((algebra.lt(j, 1), algebra.lt(m, 1)))
    assert counted(total(choose(some, total(product(i), STEP, 4), 0), J, k), "k", range(4)) is None


def test_overlapping_steps_have_no_count() -> None:
    overlapping = total(total(product(algebra.add(algebra.mul(j, 3), i)), STEP, 4), J, k)
    assert counted(overlapping, "k", range(3)) is None


def test_tags_are_there_where_an_extremum_has_an_element() -> None:
    padded = choose(algebra.lt(j, n), element("A", m, j), infinity(-1))
    found = single(reading().of(reduce_("max", J, 0, k, padded)).names["m"])
    assert found is not None
    assert (found[0], set(found[1])) == (m, {algebra.lt(0, k), algebra.lt(0, n)})
    assert single(reading().of(total(element("A", m, j), J, k)).names["m"]) == (m, ())


def test_tags_are_there_where_a_value_meets_all_conditions_of_an_extremum() -> None:
    masked = choose(algebra.all_of((algebra.lt(j, m), algebra.le(n, j))), element("A", n, j), infinity(-1))
    parts = reading().of(reduce_("max", J, 0, k, masked)).names["m"]
    found = single(parts)
    assert found is not None
    there = algebra.all_of(found[1])
    ways = [(3, 2), (2, 2), (1, 2), (0, 0), (9, 7), (9, 8)]
    assert [bool(evaluate(there, {M: high, N: low, K: 8})) for high, low in ways] == [
        True,
        False,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(("last", "first"), [(3, 1), (9, 0)])
def test_a_part_that_one_value_of_a_variable_has_is_there_once(last: int, first: int) -> None:
    block = choose(
        algebra.eq(algebra.add(i, 1), last + 1), product(j), product(algebra.add(j, algebra.sub(12, algebra.mul(i, 4))))
    )
    numbers = counted(total(total(block, J, 4), STEP, 4), "k", range(17))
    rest = [0 if last == 3 else 1] * 4
    assert numbers == [first + each for each in rest] + [1] * 12 + [0]


def test_a_product_has_the_tags_of_its_factors() -> None:
    made = reading().of(product(j))
    assert {name: single(parts) for name, parts in made.names.items()} == {"m": (m, ()), "k": (j, ()), "n": (n, ())}


def test_factors_that_disagree_keep_both_tags() -> None:
    made = reading().of(product(j, algebra.add(j, 1)))
    assert {part.value for part in made.names["k"]} == {j, algebra.add(j, 1)}
    assert counted(total(product(j, algebra.add(j, 1)), J, k), "k", range(11)) == [1, *([2] * 9), 1]


def test_a_function_of_a_sum_closes_it() -> None:
    made = reading().of(fn("exp", total(product(j), J, k)))
    assert "k" not in made.names
    assert [each.name for each in made.closed] == ["k"]


def test_a_negative_sum_is_apart() -> None:
    halves = total(product(j), J, 5), total(product(algebra.add(j, 5)), J, 5)
    for other in (fn("sub", *halves), fn("add", halves[0], fn("neg", halves[1]))):
        assert [each.name for each in reading().of(other).closed] == ["k"]


def test_padding_of_either_case_is_seen() -> None:
    padded = choose(algebra.lt(j, k), element("X", j), 1)
    for cases in ((padded, element("X", j)), (element("X", j), padded)):
        assert reading().of(total(choose(algebra.lt(0, n), *cases), J, 16)).lost


def test_elements_and_their_mean_are_apart() -> None:
    mean = fn("div", total(element("X", j), J, k), expr(k))
    made = reading().of(fn("sub", element("X", n), mean))
    assert made.names["n"] == (Part(n, beside=frozenset({N})),)
    assert [each.name for each in made.closed] == ["n"]


@pytest.mark.parametrize(("op", "padding", "lost"), [("sum", 0, False), ("sum", 1, True), ("max", 0, True)])
def test_padding_must_be_neutral(op: str, padding: int, lost: bool) -> None:
    padded = choose(algebra.lt(j, k), element("X", j), padding)
    made = reading().of(reduce_("sum" if op == "sum" else "max", J, 0, 16, padded))
    assert bool(made.lost) == lost


def test_padding_is_carried_through_functions() -> None:
    scores = choose(algebra.lt(j, k), element("X", j), infinity(-1))
    shifted = fn("exp", fn("mul", fn("sub", scores, element("X", n)), expr(2)))
    assert not reading().of(reduce_("sum", J, 0, 16, shifted)).lost
    assert not reading().of(reduce_("max", J, 0, 16, scores)).lost
    assert reading().of(reduce_("sum", J, 0, 16, scores)).lost
    assert -inf in reading().of(scores).pads.values()


def scores(tensor: str, reference: Expr | None = None) -> Expr:
    """The weight of an element."""
    return fn("exp", element(tensor, j) if reference is None else fn("sub", element(tensor, j), reference))


def whole(relative: Expr) -> Expr:
    """A logarithm of weights relative to the maximum, without that."""
    return fn("add", fn("log", relative), highest)


def unlike(maximum: Expr) -> Expr:
    """A maximum, or 0 where it is 3."""
    return choose(compare("==", maximum, 3), 0, maximum)


def there(maximum: Expr) -> Expr:
    """A maximum, or 0 where it is over nothing."""
    return choose(compare("==", maximum, infinity(-1)), 0, maximum)


def weighed(weight: Expr) -> Expr:
    return fn("mul", weight, element("A", m, j))


so_far = reduce_("max", STEP, 0, j, element("X", i))
highest = reduce_("max", STEP, 0, k, element("X", i))
POWERS = total(fn("exp2", fn("sub", element("X", j), highest)), J, k)

SAID: dict[str, tuple[Expr, bool]] = {
    "a sum of products": (total(product(j), J, k), True),
    "a function of one element": (fn("exp", element("X", n)), True),
    "a function of a sum": (fn("relu", fn("div", total(product(j), J, k), expr(k))), True),
    "a sum in two parts": (fn("add", total(product(j), J, k), total(product(algebra.add(j, k)), J, k)), True),
    "a maximum of padded elements": (
        reduce_("max", J, 0, k, choose(algebra.lt(j, n), element("X", j), infinity(-1))),
        True,
    ),
    "sums times elements": (
        total(
            fn("fma", element("X", i), total(product(j), J, 4), fn("mul", total(product(j), J, 4), element("X", i))),
            STEP,
            4,
        ),
        True,
    ),
    "a sum of which some parts are scaled": (
        fn("add", total(product(j), J, k), fn("mul", total(product(j), J, k), element("X", i))),
        False,
    ),
    "a sum times a sum": (fn("mul", total(product(j), J, k), total(element("X", j), J, k)), True),
    "a difference of sums": (fn("sub", total(product(j), J, k), total(product(algebra.add(j, k)), J, k)), True),
    "a term with another sign": (fn("add", element("X", j), fn("neg", element("X", i))), False),
    "terms with factors": (fn("add", element("X", j), fn("mul", element("X", i), expr(2))), False),
    "elements times their index": (total(fn("mul", element("X", j), expr(j)), J, k), False),
    "a sum of functions of elements": (total(fn("exp", element("X", j)), J, k), True),
    "a sum and an extremum": (
        fn("div", element("X", n), fn("add", total(element("X", j), J, k), reduce_("max", J, 0, k, element("X", j)))),
        True,
    ),
    "products of unlike tensors": (
        fn("add", total(product(j), J, k), total(fn("mul", element("A", m, j), element("X", j)), J, k)),
        False,
    ),
    "products of what is computed": (
        total(fn("mul", fn("sub", element("A", m, j), element("A", m, j)), element("B", n, j)), J, k),
        False,
    ),
    "numbers that differ between elements": (fn("mul", element("X", n), expr(algebra.coord(0))), False),
    "means added": (total(fn("div", total(element("A", j, i), STEP, k), expr(k)), J, k), False),
    "functions of sums added": (total(fn("exp", total(element("A", j, i), STEP, k)), J, k), True),
    "weights and their sum": (fn("div", total(weighed(scores("X")), J, k), total(scores("X"), J, k)), True),
    "weights and the sum of others": (fn("div", total(weighed(scores("X")), J, k), total(scores("Z"), J, k)), False),
    "a weight and the sum of others": (fn("div", fn("exp", element("Z", n)), total(scores("X"), J, k)), False),
    "a weight and the sum of its like": (fn("div", fn("exp", element("X", n)), total(scores("X"), J, k)), True),
    "weights less a maximum so far": (whole(total(scores("X", so_far), J, k)), False),
    "weights of a column less the maxima of their rows": (
        total(fn("exp", fn("sub", element("A", j, n), reduce_("max", STEP, 0, k, element("A", j, i)))), J, k),
        False,
    ),
    "weights less the maximum": (whole(total(scores("X", highest), J, k)), True),
    "weights whose references cancel": (
        whole(total(fn("mul", scores("X", so_far), fn("exp", fn("sub", so_far, highest))), J, k)),
        True,
    ),
    "weights whose references do not cancel": (
        whole(total(fn("mul", scores("X", so_far), fn("exp", fn("sub", highest, so_far))), J, k)),
        False,
    ),
    "weights whose references cancel but for a number": (
        whole(total(fn("mul", scores("X", so_far), fn("exp", fn("sub", unlike(so_far), highest))), J, k)),
        False,
    ),
    "weights with a number in place of an infinite maximum": (
        whole(fn("add", total(scores("X", there(highest)), J, n), total(scores("X", highest), J, k))),
        True,
    ),
    "weights with a number in place of another maximum": (
        whole(fn("add", total(scores("X", unlike(highest)), J, n), total(scores("X", highest), J, k))),
        False,
    ),
    "weights that are left relative to their maximum": (total(scores("X", highest), J, k), False),
    "their logarithm": (fn("log", total(scores("X", highest), J, k)), False),
    "a logarithm and a multiple of its reference": (
        fn("add", fn("log", total(scores("X", highest), J, k)), fn("mul", highest, expr(2))),
        False,
    ),
    "a logarithm and another maximum": (
        fn("add", fn("log", total(scores("X", highest), J, k)), reduce_("max", STEP, 0, k, element("Z", i))),
        False,
    ),
    "a logarithm to another base and its reference": (fn("add", fn("log", POWERS), highest), False),
    "a logarithm to another base and its reference times the nearest float of ln(2)": (
        fn("add", fn("log", POWERS), fn("mul", highest, expr(Fraction(log(2))))),
        True,
    ),
    "a logarithm to another base and its reference times another float": (
        fn("add", fn("log", POWERS), fn("mul", highest, expr(Fraction(0.6932)))),
        False,
    ),
    "weights in other units than their sum": (
        fn("div", total(weighed(scores("X", highest)), J, k), total(scores("X", fn("mul", highest, expr(2))), J, k)),
        False,
    ),
    "weights and their sum less the maximum": (
        fn("div", total(weighed(scores("X", highest)), J, k), total(scores("X", there(highest)), J, k)),
        True,
    ),
    "elements in units of their maximum": (total(fn("div", element("X", j), highest), J, k), False),
    "elements in units of their maximum times it": (
        fn("mul", total(fn("div", element("X", j), highest), J, k), highest),
        True,
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_which_values_tags_say(name: str) -> None:
    of, said = SAID[name]
    assert (not_said_by_tags(of, TAGS) == "") == said


def test_collections_of_each_value_must_be_complete_for_every_value() -> None:
    whole = total(product(j), J, k)
    first = choose(algebra.lt(i, 1), total(product(j), J, 3), total(product(j), J, 2))
    rest = total(product(algebra.add(j, 3)), J, algebra.sub(k, 3))
    masked = choose(algebra.lt(i, n), whole, infinity(-1))
    for sums, known in ((masked, True), (fn("add", first, rest), False)):
        (closed,) = reading().of(reduce_("max", STEP, 0, k, sums)).closed
        found = count(closed.parts, closed.op)
        assert (found is not None) == known
        if found is not None:
            assert [int(evaluate(found, {COUNTED: x, K: 5, M: 0, N: 0})) for x in range(7)] == [1, 1, 1, 1, 1, 0, 0]


def test_names_of_one_factor_each_need_no_pairs_where_every_product_is_summed() -> None:
    body = fn("mul", element("A", m, j), element("X", i))
    assert not reading().of(total(total(body, STEP, 3), J, k)).lost
    paired = fn("mul", element("A", m, j), element("X", algebra.sub(k, j)))
    assert "which `k` is multiplied by which `n`" in reading().of(total(paired, J, k)).lost
    slanted = reduce_("sum", STEP, 0, k, body, where=algebra.le(i, j))
    assert reading().of(total(slanted, J, k)).lost


def closed_where(of: Expr) -> list[tuple[Cond, ...]]:
    """The conditions of the complete collections of k."""
    return [each.given for each in reading().of(of).closed if each.name == "k"]


SUM, HALF = total(product(j), J, k), total(product(j), J, 4)
FIRST = algebra.lt(m, 1)


@pytest.mark.parametrize(
    ("of", "given"),
    [
        pytest.param(choose(FIRST, fn("exp", SUM), 0), [(FIRST,)], id="one case"),
        pytest.param(
            choose(FIRST, fn("exp", SUM), fn("exp", HALF)), [(FIRST,), (algebra.negate(FIRST),)], id="two cases"
        ),
        pytest.param(choose(FIRST, fn("exp", SUM), fn("log", SUM)), [()], id="either case"),
        pytest.param(fn("mul", fn("log", SUM), choose(FIRST, fn("exp", SUM), 1)), [()], id="there anyway"),
        pytest.param(total(choose(algebra.lt(i, 1), fn("exp", SUM), 0), STEP, 9), [()], id="one of a range"),
    ],
)
def test_complete_collections_have_the_conditions_of_their_cases(of: Expr, given: list[tuple[Cond, ...]]) -> None:
    assert closed_where(of) == given


def complete_counts(of: Expr, number: int, row: int) -> list[int]:
    """How often the complete sets of k have a number, in one row, with K = 10."""
    made = reading().of(of)
    sets = complete_sets(made.closed, lambda each: count(each.parts, each.op) or algebra.const(0))
    counts = (each for name, each in sets if name == "k")
    return [int(evaluate(each, {COUNTED: number, K: 10, M: row, N: 0})) for each in counts if each is not None]


def test_a_set_of_one_case_is_another_one_elsewhere() -> None:
    beside = fn("mul", fn("log", SUM), choose(FIRST, fn("exp", HALF), 1))
    cases = choose(FIRST, fn("exp", HALF), fn("exp", SUM))

    assert [complete_counts(beside, 7, row) for row in (0, 1)] == [[1, 0], [1, 1]]
    assert [complete_counts(cases, 7, row) for row in (0, 1)] == [[0, 0], [1, 1]]
    assert complete_counts(choose(FIRST, fn("exp", HALF), 1), 7, 1) == [0]
