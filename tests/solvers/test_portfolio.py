from __future__ import annotations

import pytest
from attrs import define, field

from argus.core.algebra import le, mul, sym
from argus.core.diagnostic import InternalError
from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.portfolio import Everyone, Portfolio

n = sym(Symbol("n", "size", 1, None))
small = sym(Symbol("t", "thread", 0, 63))
wide = sym(Symbol("w", "thread", 0, 65_535))


@define
class Scripted:
    """Gives one answer and remembers its budgets."""

    answer: Answer
    name: str = "scripted"
    capabilities: Capabilities = field(factory=lambda: Capabilities(True, False, False, False))
    budgets: list[Budget] = field(factory=list[Budget])

    def check(self, query: Query, budget: Budget) -> Answer:
        assert query.assertions
        self.budgets.append(budget)
        return self.answer


UNBOUNDED = Query((le(n, 5),))


def test_small_queries_are_enumerated() -> None:
    backend = Scripted(Unsat("scripted"))

    assert isinstance(Portfolio((backend,)).check(Query((le(small, 5),)), Budget()), Sat)
    assert backend.budgets == []


def test_first_definite_answer_wins_and_steps_are_shared() -> None:
    first, second, third = Scripted(GaveUp("one", "tired")), Scripted(Unsat("two")), Scripted(Unsat("three"))

    answer = Portfolio((first, second, third)).check(UNBOUNDED, Budget(steps=8000))

    assert answer == Unsat("two")
    assert [budget.steps for budget in first.budgets + second.budgets] == [2000, 2000]
    assert third.budgets == []


def test_large_finite_queries_are_enumerated_last() -> None:
    tired = Scripted(GaveUp("one", "tired"))

    assert isinstance(Portfolio((tired,)).check(Query((le(70_000, mul(wide, 2)),)), Budget()), Sat)
    assert len(tired.budgets) == 1


def test_reasons_are_joined() -> None:
    answer = Portfolio((Scripted(GaveUp("one", "tired")),)).check(UNBOUNDED, Budget())

    assert answer == GaveUp("portfolio", "one: tired; enumerate: n has no finite range")


def test_capabilities_are_the_union() -> None:
    assert Portfolio((Scripted(Unsat("x")),)).capabilities == Capabilities(True, True, True, False)
    assert Everyone((Scripted(Unsat("x")),)).capabilities == Capabilities(True, False, False, False)


def test_everyone_asks_all_and_gives_the_first_definite_answer() -> None:
    backends = (Scripted(GaveUp("one", "tired")), Scripted(Unsat("two")), Scripted(Unsat("three")))

    assert Everyone(backends).check(UNBOUNDED, Budget()) == Unsat("two")
    assert [len(backend.budgets) for backend in backends] == [1, 1, 1]


def test_everyone_gives_up_when_all_do() -> None:
    answer = Everyone((Scripted(GaveUp("one", "tired")),)).check(UNBOUNDED, Budget())

    assert answer == GaveUp("all", "one: tired")


def test_disagreement_is_an_internal_error() -> None:
    backends = (Scripted(Sat("one", {n.symbol: 3})), Scripted(Unsat("two")))

    with pytest.raises(InternalError) as raised:
        Everyone(backends).check(UNBOUNDED, Budget())

    assert str(raised.value) == (
        "solvers disagree: one finds a model (n=3), two proves that there is none, for\nn <= 5\nn in [1, None]"
    )
