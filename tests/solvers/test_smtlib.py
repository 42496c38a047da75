"""Queries as SMT-LIB scripts: exported, read back, and refused where a script is not a query."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.algebra import add, all_of, any_of, bit_and, coord, eq, floordiv, le, lt, mod, mul, negate, pick, sym
from argus.core.diagnostic import ArgusError
from argus.core.index import Index, Symbol
from argus.core.query import Budget, Query, Sat, Unsat
from argus.core.walk import evaluate
from argus.solvers.conformance import Example, conformance, examples
from argus.solvers.cvc5_backend import Cvc5Text
from argus.solvers.smtlib.form import Inexpressible
from argus.solvers.smtlib.macros import definition
from argus.solvers.smtlib.reader import read_script
from argus.solvers.smtlib.script import export, symbol_name, symbol_of
from argus.solvers.z3_backend import Z3, Z3Text

x, y = (sym(Symbol(name, "size", 1, None)) for name in "xy")
OPERATORS: dict[str, Callable[[int, int], int]] = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


def script(query: Query) -> str:
    text = export(query)
    assert isinstance(text, str)
    return text


def refused(text: str) -> str:
    with pytest.raises(ArgusError) as raised:
        read_script(text)
    assert raised.value.diagnostic.code == "E603"
    return raised.value.diagnostic.message


# -- there and back --------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_every_question_of_the_suite_comes_back(example: Example) -> None:
    back = read_script(script(example.query)).query

    assert back == example.query
    assert back.key == example.query.key


@pytest.mark.share(8)
@pytest.mark.parametrize("solver", [Z3Text(), Cvc5Text()], ids=lambda solver: solver.name)
def test_other_parsers_read_exported_scripts(solver: Z3Text | Cvc5Text) -> None:
    assert [f"{failure.example.name}: {failure.problem}" for failure in conformance(solver)] == []


def test_the_status_and_comments_are_written_and_the_status_read() -> None:
    text = export(Query((lt(x, y),)), "sat", ["asked about\na kernel"])

    assert isinstance(text, str)
    assert text.startswith("; asked about\n; a kernel\n(set-info :smt-lib-version 2.6)\n")
    assert read_script(text).status == "sat"
    assert read_script(script(Query((lt(x, y),)))).status == "unknown"


def test_a_shared_part_is_written_once() -> None:
    condition = lt(x, y)
    for step in range(60):
        condition = any_of([all_of([condition, eq(x, step)]), all_of([negate(condition), eq(y, step)])])

    text = script(Query((condition,)))

    assert len(text) < 20_000
    assert read_script(text).query == Query((condition,))


def test_deep_expressions_come_back() -> None:
    value: Index = x
    for step in range(2000):
        value = pick(le(value, step), y, add(value, 1))

    assert read_script(script(Query((le(value, 7),)))).query == Query((le(value, 7),))


@pytest.mark.parametrize("name", ["k", "k 1", "a|b", "100%", "a\\b", "größe", "x array 1", "", "é%41"])
def test_names_of_any_letters_come_back(name: str) -> None:
    symbol = Symbol(name, "loop", -3, None)

    written = symbol_name(symbol)

    assert written.isascii()
    assert symbol_of(written[1:-1]) == symbol
    assert read_script(script(Query((le(sym(symbol), 0),)))).query.symbols == (symbol,)


def test_symbols_that_differ_in_range_alone_stay_apart() -> None:
    narrow, wide = (sym(Symbol("n", "size", 0, high)) for high in (4, 9))
    query = Query((lt(narrow, wide), le(5, wide)))

    assert read_script(script(query)).query == query
    for solver in (Z3Text(), Cvc5Text()):
        answer = solver.check(query, Budget())
        assert isinstance(answer, Sat)
        assert answer.model[narrow.symbol] < answer.model[wide.symbol] >= 5


def test_operators_without_an_exact_definition_are_not_exported() -> None:
    assert isinstance(export(Query((eq(bit_and(x, y), 3),))), Inexpressible)
    assert isinstance(export(Query((eq(coord(0), 3),))), Inexpressible)


# -- operators that SMT-LIB lacks ------------------------------------------------------------------------


@pytest.mark.parametrize("short", OPERATORS)
@pytest.mark.parametrize("bits", [1, 3])
def test_definitions_of_bitwise_operators_are_exact(short: str, bits: int) -> None:
    says = relation_of(definition(f"argus.{short}.{bits}"))

    for a in range(-21, 22):
        for b in range(-(1 << bits), 1 << bits):
            right = OPERATORS[short](a, b)
            assert says(a, b, right)
            assert not says(a, b, right + 1)


@pytest.mark.parametrize(("short", "shift"), [("shl", int.__lshift__), ("shr", int.__rshift__)])
def test_definitions_of_shifts_are_exact(short: str, shift: Callable[[int, int], int]) -> None:
    says = relation_of(definition(f"argus.{short}.3"))

    assert all(says(a, n, shift(a, n)) and not says(a, n, shift(a, n) - 1) for a in range(-21, 22) for n in range(4))


@pytest.mark.parametrize(("short", "function"), [("min", min), ("max", max)])
def test_definitions_of_extrema_are_exact(short: str, function: Callable[[int, int], int]) -> None:
    says = relation_of(definition(f"argus.{short}"))

    pairs = [(a, b) for a in range(-4, 5) for b in range(-4, 5)]
    assert all(says(a, b, function(a, b)) and not says(a, b, function(a, b) + 1) for a, b in pairs)


def relation_of(text: str) -> Callable[[int, int, int], bool]:
    """Whether a definition of two operands has a result, read as anybody's: under another name it is expanded."""
    name = text.split()[1]
    constants = "".join(f"(declare-const {each} Int)" for each in ("left", "right", "result"))
    asked = f"{text.replace(name, 'mine')}{constants}(assert (= result (mine left right)))(check-sat)"
    (asserted,) = read_script(asked).query.assertions
    left, right, result = (Symbol(each, "fresh") for each in ("left", "right", "result"))

    def holds(a: int, b: int, of_both: int) -> bool:
        return bool(evaluate(asserted, {left: a, right: b, result: of_both}))

    return holds


def test_a_definition_of_ours_that_was_changed_means_what_it_says() -> None:
    text = script(Query((eq(bit_and(sym(Symbol("s", "fresh", 0, 9)), 5), 1),)))
    (defined,) = (line for line in text.splitlines() if line.startswith("(define-fun argus.and"))
    changed = text.replace(defined, "(define-fun argus.and.3 ((a Int) (b Int)) Int (+ a b))")

    s = sym(Symbol("s", "fresh", 0, 9))
    assert read_script(changed).query == Query((eq(add(s, 5), 1),))


# -- scripts of others -----------------------------------------------------------------------------------


def test_scripts_of_others_are_read() -> None:
    text = """
        ; written by hand
        (set-logic QF_UFLIA)
        (declare-const x Int) (declare-fun y () Int) (declare-fun f (Int Int) Int)
        (define-fun twice ((n Int)) Int (* 2 n))
        (define-fun either ((p Bool) (q Bool)) Bool (or p q))
        (assert (let ((d (- x y))) (either (> d (twice 3)) (distinct x y 5))))
        (assert (=> (>= x 0) (= (f x 1) (- y) (mod x 4))))
        (assert (! (= (< x 3) (ite (= y 1) true false)) :named last))
        (check-sat) (get-model) (exit)
    """
    query = read_script(text).query

    a, b = (sym(Symbol(name, "fresh")) for name in "xy")
    assert set(query.symbols) == {a.symbol, b.symbol}
    assert len(query.assertions) == 3
    assert query.assertions[0] is any_of(
        [lt(6, add(a, mul(b, -1))), all_of([negate(eq(a, b)), negate(eq(a, 5)), negate(eq(b, 5))])]
    )
    assert isinstance(Z3().check(query, Budget()), Sat)


def test_divisors_asserted_positive_are_taken() -> None:
    n, d = (sym(Symbol(name, "fresh")) for name in "nd")
    text = "(declare-const n Int)(declare-const d Int)(assert (! (<= 1 d) :named defined.0))"

    query = read_script(text + "(assert (= (div n d) (mod n d)))(check-sat)").query

    assert query == Query((eq(floordiv(n, d), mod(n, d)),))
    assert isinstance(Z3().check(Query((*query.assertions, eq(d, 0))), Budget()), Unsat)


DECLARED = "(declare-const x Int)(declare-const y Int)"
REFUSED = {
    "(": "ends inside a parenthesis",
    ")": "unmatched closing",
    "x": "expected a command",
    DECLARED: "expected one check-sat, found 0",
    f"{DECLARED}(check-sat)(check-sat)": "expected one check-sat, found 2",
    f"{DECLARED}(check-sat)(assert (< x y))": "is not supported",
    f"{DECLARED}(push 1)(check-sat)": "`(push 1)` is not supported",
    "(declare-const x Real)(check-sat)": "is not supported",
    "(declare-const b Bool)(check-sat)": "is not supported",
    f"{DECLARED}(declare-const x Int)(check-sat)": "another spelling",
    f"{DECLARED}(declare-const |x fresh *..*| Int)(check-sat)": "another spelling",
    f"{DECLARED}(define-fun x () Int y)(check-sat)": "`x` is declared twice",
    f"{DECLARED}(assert (= (div x y) 1))(check-sat)": "each divisor is at least 1",
    f"{DECLARED}(assert (= (mod x x) 1))(check-sat)": "each divisor is at least 1",
    f"{DECLARED}(assert (= (div x 0) 1))(check-sat)": "`div` by 0",
    f"{DECLARED}(assert (= (div x (- 2)) 1))(check-sat)": "`div` by -2",
    f"{DECLARED}(assert (= (/ x 2) 1))(check-sat)": "`/` of 2 arguments",
    f"{DECLARED}(assert (< z 1))(check-sat)": "`z` is neither declared",
    f"{DECLARED}(assert (< x 1.5))(check-sat)": "`1.5` is neither declared nor a number",
    f"{DECLARED}(assert x)(check-sat)": "expected a condition, found an integer",
    f"{DECLARED}(assert (+ x (= x y)))(check-sat)": "expected an integer, found a condition",
    f"{DECLARED}(assert (x 1))(check-sat)": "`x` takes no arguments",
    f"{DECLARED}(assert ())(check-sat)": "is not a term",
    f"{DECLARED}(assert (forall ((z Int)) (< z x)))(check-sat)": "is not a term",
    "(declare-fun f (Int) Int)(assert (= (f 1 2) 0))(check-sat)": "`f` has 1 axes, found 2",
    "(define-fun f ((a Int)) Int a)(assert (= (f 1 2) 0))(check-sat)": "`f` takes 1 arguments, found 2",
    "(define-fun f ((a Int)) Int (f a))(assert (= (f 1) 0))(check-sat)": "nest too deeply",
    "(declare-const |k loop 0..*| Int)(check-sat)": "does not assert (<= 0 |k loop 0..*|)",
    "(declare-const |k loop 3..1| Int)(assert (<= 3 |k loop 3..1|))(assert (<= |k loop 3..1| 1))(check-sat)": (
        "with an empty range"
    ),
    f"{DECLARED}(assert {'(not ' * 300}(< x y){')' * 300})(check-sat)": "nest too deeply",
}


@pytest.mark.parametrize("text", REFUSED)
def test_scripts_that_are_not_queries_are_refused(text: str) -> None:
    assert REFUSED[text] in refused(text)


def test_a_range_must_be_asserted() -> None:
    text = script(Query((lt(x, y), le(y, 9))))
    (asserted,) = (line for line in text.splitlines() if "(<= 1 |x size 1..*|)" in line)

    assert "(<= 1 |x size 1..*|)" in refused(text.replace(asserted, ""))


def test_assertions_under_reserved_names_are_preserved() -> None:
    query = read_script(
        f"{DECLARED}(assert (! (< x y) :named range.0))(assert (! (< y x) :named defined.0))(check-sat)"
    )

    assert isinstance(Z3().check(query.query, Budget()), Unsat)
