from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from argus.core.algebra import TRUE, add, all_of, ceil_div, eq, floordiv, le, lt, mod, mul, negate, read, sym
from argus.core.diagnostic import InternalError
from argus.core.index import Cond, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import evaluate
from argus.solvers.base import Capabilities, Solver, identity
from argus.solvers.cache import Cache
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.portfolio import Everyone, Portfolio
from argus.solvers.session.minimal import minimal
from argus.solvers.session.product_facts import has_product_facts
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3

n = sym(Symbol("n", "size", 1, None))
k = sym(Symbol("k", "loop", 0, None))
t = sym(Symbol("t", "thread", 0, 255))
free = sym(Symbol("f", "fresh"))


@define
class Recording:
    """Z3, or a scripted answer, with the queries that it was asked."""

    answer: Answer | None = None
    name: str = "recording"
    version: str = "1"
    capabilities: Capabilities = field(factory=lambda: Z3().capabilities)
    queries: list[Query] = field(factory=list[Query])

    def check(self, query: Query, budget: Budget) -> Answer:
        self.queries.append(query)
        return self.answer if self.answer is not None else Z3().check(query, budget)


def test_normal_forms_need_no_solver() -> None:
    solver = Recording()
    session = Session(solver)
    both = all_of([lt(k, n), le(t, k)])

    assert session.prove([], TRUE) == Unsat("normal form")
    assert session.prove([both], lt(k, n)) == Unsat("normal form")
    assert session.prove([lt(k, n), le(t, k)], both) == Unsat("normal form")
    assert session.prove([eq(t, 3), negate(eq(t, 3))], lt(k, n)) == Unsat("normal form")
    assert solver.queries == []
    assert (session.stats.asked, session.stats.by_normal_form) == (4, 4)


def test_proof_and_counterexample() -> None:
    session = Session(Z3())
    inside = lt(k, ceil_div(n, 128))

    assert session.prove([inside], lt(mul(k, 128), n)) == Unsat("z3")
    answer = session.prove([inside], lt(add(mul(k, 128), t), n))
    assert isinstance(answer, Sat)
    assert set(answer.model) == {k.symbol, n.symbol, t.symbol}


def test_unconnected_hypotheses_are_sliced_away_from_a_proof() -> None:
    solver = Recording()

    assert isinstance(Session(solver).prove([lt(k, n), le(t, 7)], le(add(k, 1), mul(n, 2))), Unsat)
    assert [query.symbols for query in solver.queries] == [(k.symbol, n.symbol)]


def test_counterexample_covers_the_sliced_hypotheses_too() -> None:
    answer = Session(Z3()).prove([lt(k, n), le(7, t)], le(add(k, 2), n))

    assert isinstance(answer, Sat)
    assert answer.model[t.symbol] >= 7


def test_contradiction_among_sliced_hypotheses_is_a_proof() -> None:
    parity = [eq(mod(free, 2), 0), eq(mod(free, 4), 1)]

    assert isinstance(Session(Z3()).prove([lt(k, n), *parity], le(add(k, 2), n)), Unsat)


def test_memory_answers_the_second_time() -> None:
    solver = Recording()
    session = Session(solver)
    first = session.prove([lt(k, n)], le(add(k, 2), n))

    assert session.prove([lt(k, n)], le(add(k, 2), n)) == first
    assert len(solver.queries) == 1
    assert (session.stats.asked, session.stats.reached_smt, session.stats.memory_hits) == (2, 1, 1)
    assert session.stats.seconds > 0


def silent_z3() -> Recording:
    """Z3 of the installed version, but it answers nothing."""
    return Recording(GaveUp("z3", "tired"), "z3", Z3().version)


@pytest.mark.parametrize(
    "solver",
    [
        Recording(),
        Portfolio((Recording(version="2"),)),
        Portfolio((Recording(name="other"),)),
        Everyone((Recording(),)),
        Portfolio((Recording(), Recording(name="unversioned", version=""))),
    ],
    ids=["named", "another version", "another backend", "all", "unversioned"],
)
def test_a_stored_answer_is_believed_by_the_same_portfolio_only(tmp_path: Path, solver: Solver) -> None:
    """The stored proof is wrong: only a session that believes it proves the goal."""
    cache, wrong = Cache(tmp_path), ([lt(k, n)], le(add(k, 2), n))
    same = Portfolio((Recording(),))
    for asked in (identity(same), "" if isinstance(solver, Portfolio) else identity(solver)):
        cache.put(Query((lt(k, n), negate(wrong[1]))), Unsat("recording"), asked)

    assert isinstance(Session(same, cache=cache).prove(*wrong), Unsat)
    assert isinstance(Session(solver, cache=cache).prove(*wrong), Sat)
    cache.close()


def test_disk_answers_the_next_session(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    hard = ([lt(k, n)], le(add(k, 2), n))
    first = Session(Portfolio((Z3(),)), cache=cache).prove(*hard)
    cache.close()
    later = Cache(tmp_path)
    session = Session(Portfolio((silent_z3(),)), cache=later)

    assert session.prove(*hard) == first
    assert (session.stats.disk_hits, session.stats.reached_smt) == (1, 0)
    later.close()


def test_a_cache_remembers_what_its_process_has_checked(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    hard = ([lt(k, n)], le(add(k, 2), n))
    first = Session(Z3(), cache=cache).prove(*hard)
    assert not cache.path.exists()
    session = Session(silent_z3(), cache=cache)

    assert session.prove(*hard) == first
    assert (session.stats.memory_hits, session.stats.disk_hits, session.stats.reached_smt) == (1, 0, 0)
    assert isinstance(session.prove([lt(k, n)], le(add(k, 3), n)), GaveUp)
    cache.close()


def test_wrong_model_from_disk_is_asked_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    solver = Portfolio((Z3(),))
    cache.put(Query((lt(k, n),)), Sat("z3", {k.symbol: 5, n.symbol: 5}), identity(solver))
    session = Session(solver, cache=cache)

    answer = session.check([lt(k, n)])

    assert isinstance(answer, Sat)
    assert answer.model[k.symbol] < answer.model[n.symbol]
    assert session.stats.disk_hits == 0
    cache.close()


def test_giving_up_is_counted_and_passed_on() -> None:
    session = Session(Recording(GaveUp("recording", "tired")))

    assert session.prove([lt(k, n)], le(add(k, 2), n)) == GaveUp("recording", "tired")
    assert session.stats.gave_up == 1


def test_enumerated_answers_are_no_smt() -> None:
    session = Session(Recording(Unsat("enumerate")))
    session.check([lt(k, n)])

    assert (session.stats.enumerated, session.stats.reached_smt) == (1, 0)


def test_wrong_model_is_an_internal_error() -> None:
    session = Session(Recording(Sat("recording", {k.symbol: 5, n.symbol: 5})))

    with pytest.raises(InternalError, match="model from recording is wrong: k < n does not hold"):
        session.check([lt(k, n)])


@pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=lambda solver: solver.name)
def test_minimal_model_is_lexicographic(solver: Z3 | Cvc5) -> None:
    session = Session(solver)
    assertions = [le(1000, add(n, mul(k, 3))), le(n, 900), le(17, t), eq(mod(t, 5), 1)]

    by_size = session.minimise(assertions, [n, k, t])
    by_trip = session.minimise(assertions, [k, n, t])

    assert isinstance(by_size, Sat)
    assert isinstance(by_trip, Sat)
    assert [by_size.model[s.symbol] for s in (n, k, t)] == [1, 333, 21]
    assert [by_trip.model[s.symbol] for s in (n, k, t)] == [898, 34, 21]


def test_minimising_expressions_without_lower_bound_stops_at_zero() -> None:
    session = Session(Z3())
    answer = session.minimise([le(free, 100), le(7, mul(free, free))], [free, floordiv(free, k), read("t", [free])])

    assert isinstance(answer, Sat)
    assert answer.model[free.symbol] <= 3


def test_minimise_passes_on_what_the_assertions_answer() -> None:
    assert isinstance(Session(Z3()).minimise([lt(k, n), lt(n, k)], [n]), Unsat)
    tired = GaveUp("recording", "tired")
    assert Session(Recording(tired)).minimise([lt(k, n)], [n]) == tired


def test_minimise_keeps_the_best_found_when_the_solver_gives_up() -> None:
    @define
    class Once(Recording):
        def check(self, query: Query, budget: Budget) -> Answer:
            self.answer = GaveUp("once", "tired") if self.queries else None
            return super().check(query, budget)

    answer = Session(Once()).minimise([le(5, n)], [n])

    assert isinstance(answer, Sat)
    assert answer.model[n.symbol] >= 5


def test_minimise_asks_for_small_values_where_the_solver_gives_up_on_large_ones() -> None:
    def check(conditions: Sequence[Cond]) -> Answer:
        fitting = [each for each in range(1001) if all(evaluate(cond, {n.symbol: each}) for cond in conditions)]
        if len(conditions) > 1 and fitting and fitting[-1] > 100:
            return GaveUp("known", "tired")
        return Sat("known", {n.symbol: fitting[-1]}) if fitting else Unsat("known")

    answer = minimal(check, [le(5, n)], [n])

    assert isinstance(answer, Sat)
    assert answer.model[n.symbol] == 5


def test_minimise_ends_where_the_solver_gives_up_on_small_values_too() -> None:
    asked: list[Cond] = []

    def check(conditions: Sequence[Cond]) -> Answer:
        asked.extend(conditions[1:])
        return GaveUp("known", "tired") if len(conditions) > 1 else Sat("known", {n.symbol: 1000})

    answer = minimal(check, [le(5, n)], [n])

    assert isinstance(answer, Sat)
    assert asked == [le(n, 999), le(n, 1)]


def test_what_a_solver_gave_up_on_is_not_asked_again_with_the_same_limit() -> None:
    solver = Recording(GaveUp("recording", "tired"))
    session = Session(solver, Budget.about(0.5))
    products = [le(k, t), lt(mul(t, n), mul(k, n))]

    assert has_product_facts(tuple(products))
    assert isinstance(session.check(products), GaveUp)
    asked = [query.key for query in solver.queries]
    assert len(set(asked)) == len(asked)
    assert isinstance(session.check(products), GaveUp)
    assert len(solver.queries) == len(asked)
