"""The conformance suite passes on every backend, and detects each seeded fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import cast

import pytest
from attrs import evolve, frozen

from argus.core.algebra import add, const, eq, floordiv, le, mod, negate, pick, sub, sym
from argus.core.index import Bin, Cmp, Cond, Const, Held, Index, Node, Or, Read, Sym, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import fold, rebuild
from argus.solvers.base import Capabilities, Solver
from argus.solvers.conformance import conformance, examples, needs
from argus.solvers.enumeration import Enumerate
from argus.solvers.registry import get
from argus.solvers.z3_backend import Z3

EVERYTHING = Capabilities(unbounded=True, nonlinear=True, bitwise=True, reads=True)
NAMES = ("z3", "cvc5", "enumerate", "portfolio", "all")


@frozen
class Wrong:
    """Gives a fixed answer, whatever the query."""

    answer: Callable[[Query], Answer]
    capabilities: Capabilities = EVERYTHING
    name: str = "wrong"

    def check(self, query: Query, budget: Budget) -> Answer:
        assert budget.seconds > 0
        return self.answer(query)


def zeros(query: Query) -> Answer:
    return Sat("wrong", dict.fromkeys(query.symbols, 0))


@pytest.mark.parametrize("name", NAMES)
def test_backends_conform(name: str) -> None:
    failures = [f"{failure.example.name}: {failure.problem}" for failure in conformance(get(name))]

    assert failures == []


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (Wrong(lambda _: Unsat("wrong")), "answers unsat to a satisfiable query"),
        (Wrong(zeros), "answers sat to an unsatisfiable query"),
        (Wrong(zeros), "gives a wrong model"),
        (Wrong(lambda _: Sat("wrong", {})), "gives a wrong model"),
        (Wrong(lambda _: GaveUp("wrong", "tired")), "gives up within its capabilities: tired"),
    ],
)
def test_wrong_backends_are_caught(solver: Solver, problem: str) -> None:
    assert any(problem in failure.problem for failure in conformance(solver))


def test_a_backend_that_raises_or_answers_nonsense_is_reported() -> None:
    def stumble(_: Query) -> Answer:
        raise RuntimeError("out of luck")

    raising = conformance(Wrong(stumble))
    nonsense = conformance(Wrong(lambda _: cast(Answer, None)))

    assert len(raising) == len(nonsense) == len(examples())
    assert {failure.problem for failure in raising} == {"raises RuntimeError: out of luck"}
    assert {failure.problem for failure in nonsense} == {"answers with a NoneType"}


def test_a_backend_that_changes_its_mind_is_reported() -> None:
    turns = count()

    def another_each_time(query: Query) -> Answer:
        answer = Z3().check(query, Budget())
        if not isinstance(answer, Sat) or query != Query((le(1_000_000, sym(Symbol("x", "fresh"))),)):
            return answer
        return Sat("fickle", {symbol: 1_000_000 + next(turns) for symbol in query.symbols})

    failures = conformance(Wrong(another_each_time, Z3().capabilities))

    assert [(each.example.name, each.problem) for each in failures] == [
        ("an unbounded symbol", "answers equal queries differently")
    ]


# -- backends with one fault each ------------------------------------------------------------------------


@frozen
class Mutant:
    """Z3, asked another query than it was given; its model is completed with zeros."""

    change: Callable[[Query], Query]
    name: str = "mutant"
    capabilities: Capabilities = Z3().capabilities

    def check(self, query: Query, budget: Budget) -> Answer:
        answer = Z3().check(self.change(query), budget)
        return Sat("mutant", {s: answer.model.get(s, 0) for s in query.symbols}) if isinstance(answer, Sat) else answer


def each_node(change: Callable[[Node, Sequence[Node]], Node]) -> Callable[[Query], Query]:
    return lambda query: Query(tuple(cast(Cond, fold(each, change)) for each in query.assertions))


def forgets_ranges(node: Node, parts: Sequence[Node]) -> Node:
    return sym(evolve(node.symbol, low=None, high=None)) if isinstance(node, Sym) else rebuild(node, parts)


def truncates(node: Node, parts: Sequence[Node]) -> Node:
    """Division towards zero, as in C."""
    if not isinstance(node, Bin) or node.op not in ("//", "%") or not isinstance(node.right, Const):
        return rebuild(node, parts)
    left, right = cast(Index, parts[0]), node.right
    quotient = pick(le(0, left), floordiv(left, right), sub(0, floordiv(sub(0, left), right)))
    return quotient if node.op == "//" else sub(left, _times(quotient, right.value))


def _times(value: Index, factor: int) -> Index:
    return add(*[value] * factor) if factor < 64 else value


def off_by_one(node: Node, parts: Sequence[Node]) -> Node:
    changed = rebuild(node, parts)
    return le(cast(Index, parts[0]), add(cast(Index, parts[1]), 1)) if _is_order(node) else changed


def _is_order(node: Node) -> bool:
    return isinstance(node, Cmp) and node.op == "<="


def one_array(node: Node, parts: Sequence[Node]) -> Node:
    """All arrays and fragments are one variable."""
    return sym(Symbol("everything", "fresh")) if isinstance(node, Read | Held) else rebuild(node, parts)


def no_congruence(node: Node, parts: Sequence[Node]) -> Node:
    """Each element is a variable of its own, whatever its index equals."""
    return sym(Symbol(node.digest.hex(), "fresh")) if isinstance(node, Read | Held) else rebuild(node, parts)


def first_of_several(node: Node, parts: Sequence[Node]) -> Node:
    return parts[0] if isinstance(node, Or) and parts else rebuild(node, parts)


def divisors_of_any_sign(query: Query) -> Query:
    """Forgets that only positive divisors count, by the value 0 for other quotients."""

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if not isinstance(node, Bin) or node.op not in ("//", "%") or isinstance(node.right, Const):
            return rebuild(node, parts)
        left, right = cast(Index, parts[0]), cast(Index, parts[1])
        safe = pick(le(1, right), right, const(1))
        return pick(le(1, right), (floordiv if node.op == "//" else mod)(left, safe), 0)

    return each_node(visit)(query)


def small_integers(query: Query) -> Query:
    """Symbols without bounds have 64 bits."""

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if not isinstance(node, Sym):
            return rebuild(node, parts)
        low, high = node.symbol.low, node.symbol.high
        least, most = -(1 << 63), (1 << 63) - 1
        return sym(evolve(node.symbol, low=least if low is None else low, high=most if high is None else high))

    return each_node(visit)(query)


MUTANTS: dict[str, Callable[[Query], Query]] = {
    "forgets an assertion": lambda query: Query(query.assertions[:-1]),
    "forgets the first assertion": lambda query: Query(query.assertions[1:]),
    "denies the last assertion": lambda query: Query((*query.assertions[:-1], *map(negate, query.assertions[-1:]))),
    "forgets ranges": each_node(forgets_ranges),
    "truncates": each_node(truncates),
    "is off by one": each_node(off_by_one),
    "has one array": each_node(one_array),
    "has no congruence": each_node(no_congruence),
    "takes the first of several": each_node(first_of_several),
    "divides by anything": divisors_of_any_sign,
    "has 64 bits": small_integers,
}


@pytest.mark.share(12)
@pytest.mark.parametrize("fault", MUTANTS)
def test_a_backend_with_one_fault_is_caught(fault: str) -> None:
    assert conformance(Mutant(MUTANTS[fault])) != ()


def test_a_mutant_without_a_fault_passes() -> None:
    assert conformance(Mutant(each_node(rebuild))) == ()
    assert isinstance(Mutant(each_node(rebuild)).check(Query((eq(const(1), 2),)), Budget()), Unsat)


def test_giving_up_beyond_the_capabilities_is_allowed() -> None:
    modest = Wrong(lambda _: GaveUp("wrong", "tired"), Capabilities(False, False, False, False))

    failed = [failure.example for failure in conformance(modest)]

    assert all(needs(example.query) == Capabilities(False, False, False, False) for example in failed)
    assert 0 < len(failed) < len(examples())


def test_names_are_distinct_and_both_answers_occur() -> None:
    names = [example.name for example in examples()]

    assert len(set(names)) == len(names)
    assert {example.expected for example in examples()} == {"sat", "unsat"}


def test_expected_answers_hold_by_enumeration_where_it_reaches() -> None:
    definite = [e for e in examples() if not isinstance(Enumerate().check(e.query, Budget()), GaveUp)]

    assert len(definite) > 20
