"""A solver with a stack of assertions decides as one without; what its models depend on reaches no counterexample."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from attrs import define, field

from argus.core.algebra import eq, floordiv, le, lt, maximum, minimum, mod, mul, negate, read, sym
from argus.core.index import Cond, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.conformance import conformance, examples
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.incremental import Incremental, OnStack, opened
from argus.solvers.model import fault
from argus.solvers.portfolio import Everyone, portfolio
from argus.solvers.session.session import Session
from argus.solvers.smtlib.build import TermMaker
from argus.solvers.z3_backend import Z3

n = sym(Symbol("n", "size", 1, None))
k = sym(Symbol("k", "loop", 0, None))
t = sym(Symbol("t", "thread", 0, 255))


def stacked() -> OnStack:
    return Z3().opened()


def test_a_stack_conforms_but_for_models_that_depend_on_earlier_queries() -> None:
    different = "answers equal queries differently"
    problems = [each.problem for each in conformance(stacked())]

    assert set(problems) <= {different}


@pytest.mark.share(3)
def test_queries_in_any_order_have_the_answers_that_each_has_alone() -> None:
    """Hypotheses come and go, so that levels below the top are left."""
    solver, alone = stacked(), Z3()
    drawn = random.Random(7)  # noqa: S311 reason: a fixed sample of queries
    pool: list[Cond] = [
        lt(k, n),
        le(n, 40),
        lt(t, mul(k, 3)),
        eq(mod(n, 8), 3),
        le(floordiv(n, 16), 1),
        le(3, minimum(k, t)),
        lt(maximum(k, t), 9),
        eq(read("rows", (k,)), t),
        negate(eq(read("rows", (t,)), 5)),
        eq(read("rows", (n,)), 5),
        eq(k, t),
        le(mul(k, t), n),
        le(1, floordiv(t, k)),
        lt(n, floordiv(n, 16)),
        lt(mod(n, 8), 3),
        lt(minimum(k, t), 2),
        lt(mul(k, n), k),
    ]
    definite = {Unsat: 0, Sat: 0}
    for _ in range(200):
        query = Query(tuple(drawn.sample(pool, drawn.randint(1, 8))))
        found, expected = solver.check(query, Budget()), alone.check(query, Budget())
        assert type(found) is type(expected)
        if isinstance(found, Sat):
            assert fault(query, found.model) is None
        definite[cast("type[Sat | Unsat]", type(found))] += 1
    assert min(definite.values()) > 20


def test_elements_of_arrays_agree_across_queries() -> None:
    """An element of an earlier query constrains no other; those of one query are equal where their indices are."""
    solver = stacked()
    one, two = eq(read("rows", (k,)), 1), eq(read("rows", (t,)), 2)

    assert isinstance(solver.check(Query((one,)), Budget()), Sat)
    assert isinstance(solver.check(Query((two, eq(k, t))), Budget()), Sat)
    assert isinstance(solver.check(Query((one, two, eq(k, t))), Budget()), Unsat)
    assert isinstance(solver.check(Query((one, two)), Budget()), Sat)
    found = solver.check(Query((one, two, le(k, 3), lt(t, k))), Budget())
    assert isinstance(found, Sat)
    assert set(found.elements.values()) == {1, 2}


def test_few_steps_and_what_has_no_form_are_given_up() -> None:
    solver = stacked()
    hard = Query((eq(mul(mul(k, k), k), mul(mul(n, n), mul(n, 3))), le(1, k)))

    given_up = solver.check(hard, Budget(steps=50))
    assert isinstance(given_up, GaveUp)
    assert given_up.exhausted
    assert isinstance(solver.check(Query((lt(k, n),)), Budget()), Sat)


class _Interrupted(KeyboardInterrupt):
    pass


@define
class Breaking:
    """A stack whose first check is interrupted."""

    of: OnStack = field(factory=stacked)
    begun: int = 0

    def begin(self) -> _Stack:
        self.begun += 1
        return _Stack(breaks=self.begun == 1)


@define
class _Stack:
    breaks: bool
    levels: int = 0

    @property
    def make(self) -> TermMaker:
        raise AssertionError("no term is needed")

    def push(self, terms: Sequence[object]) -> None:
        assert terms == []
        self.levels += 1

    def pop(self, levels: int) -> None:
        self.levels -= levels

    def check(self, budget: Budget) -> bool:
        assert budget.steps > 0
        if self.breaks:
            raise _Interrupted
        return False

    def number(self, term: object) -> int:
        raise AssertionError(term)


def test_an_interrupted_stack_is_left() -> None:
    breaking = Breaking()
    solver = OnStack("broken", Z3().capabilities, breaking.begin)

    with pytest.raises(_Interrupted):
        solver.check(Query(()), Budget())
    assert isinstance(solver.check(Query(()), Budget()), Unsat)
    assert isinstance(solver.check(Query(()), Budget()), Unsat)
    assert breaking.begun == 2


def test_who_has_a_stack() -> None:
    """The comparison of all backends has none: each answers alone."""
    assert isinstance(Z3(), Incremental)
    assert opened(Cvc5()) is None
    assert opened(Everyone((Z3(), Cvc5()))) is None
    found = opened(portfolio())
    assert found is not None
    for example in examples():
        answer = found.check(example.query, Budget())
        assert isinstance(answer, GaveUp | (Unsat if example.expected == "unsat" else Sat))


@define
class Counting:
    """Z3 that counts its checks without a stack, or whose stack answers as told."""

    name: str = "counting"
    version: str = "1"
    answer: Answer | None = None
    alone: int = 0

    @property
    def capabilities(self) -> object:
        return Z3().capabilities

    def check(self, query: Query, budget: Budget) -> Answer:
        self.alone += 1
        return Z3().check(query, budget)

    def opened(self) -> object:
        return Z3().opened() if self.answer is None else _Told(self.answer)


@define
class _Told:
    answer: Answer
    name: str = "told"

    def check(self, query: Query, budget: Budget) -> Answer:
        assert query.assertions
        assert budget.steps
        return self.answer


def test_counterexamples_do_not_depend_on_earlier_queries() -> None:
    """A proof may be the stack's; a counterexample is that of the solver alone."""
    counting = Counting()
    session = Session(cast("Solver", counting))
    assert not session.follows([lt(k, n)], lt(k, 7))
    assert session.follows([lt(k, n), lt(n, 5)], lt(k, 7))
    assert counting.alone == 0

    answer = session.prove([lt(k, n), le(5, k)], lt(k, 7))
    assert isinstance(answer, Sat)
    assert answer.model == cast("Sat", Session(Z3()).prove([lt(k, n), le(5, k)], lt(k, 7))).model
    assert counting.alone == 1
    assert isinstance(session.prove([lt(k, n), lt(n, 6)], lt(k, 8)), Unsat)
    assert counting.alone == 1


def test_what_a_stack_gives_up_on_is_asked_alone() -> None:
    counting = Counting(answer=GaveUp("told", "few steps", exhausted=True))
    session = Session(cast("Solver", counting))

    assert session.follows([lt(k, n), lt(n, 5)], lt(k, 7))
    assert counting.alone == 1


def test_models_of_a_stack_are_stored_apart(tmp_path: Path) -> None:
    solver = portfolio()
    asked = Query((lt(n, k), le(300, n)))
    Session(solver, cache=Cache(tmp_path)).follows(asked.assertions[1:], negate(asked.assertions[0]))
    plain, other = (Cache(tmp_path).get(asked, f"portfolio {solver.version}{more}") for more in ("", " any model"))

    assert plain is None
    assert isinstance(other, Sat)
    again = Session(solver, cache=Cache(tmp_path))
    assert isinstance(again.prove(asked.assertions[1:], negate(asked.assertions[0])), Sat)
    assert again.stats.disk_hits == 0
