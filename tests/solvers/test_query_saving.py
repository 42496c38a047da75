"""The ways in which a session saves queries; none may change what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from argus.core.algebra import add, all_of, any_of, ceil_div, const, eq, floordiv, le, lt, mod, mul, negate, read, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities
from argus.solvers.cache import Cache
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.session.fixed_symbols import contradicts_by_bounds
from argus.solvers.session.linear_instance import linear_instance
from argus.solvers.session.session import Session
from argus.solvers.session.witnesses import Witness, Witnesses
from argus.solvers.z3_backend import Z3

n = sym(Symbol("n", "size", 0, None))
m = sym(Symbol("m", "size", 0, None))
k = sym(Symbol("k", "loop", 0, None))
j = sym(Symbol("j", "loop", 0, None))
t = sym(Symbol("t", "thread", 0, 255))


@define
class Recording:
    """Z3, recording its queries and budgets; it gives up on queries with more than a number of symbols."""

    most: int = 99
    name: str = "recording"
    version: str = "1"
    capabilities: Capabilities = field(factory=lambda: Z3().capabilities)
    queries: list[Query] = field(factory=list[Query])
    steps: list[int] = field(factory=list[int])

    def check(self, query: Query, budget: Budget) -> Answer:
        self.queries.append(query)
        self.steps.append(budget.steps)
        return GaveUp("recording", "tired") if len(query.symbols) > self.most else Z3().check(query, budget)


# -- follows ---------------------------------------------------------------------------------------------------------


def test_a_model_of_one_question_answers_another() -> None:
    solver = Recording()
    session = Session(solver)

    assert not session.follows([lt(k, n)], le(n, add(k, 5)))
    assert not session.follows([lt(k, n)], le(n, add(k, 3)))
    assert len(solver.queries) == 1
    assert (session.stats.asked, session.stats.memory_hits) == (2, 1)


def test_hypotheses_that_imply_a_goal_imply_it_beside_others() -> None:
    solver = Recording()
    session = Session(solver)
    chain = (lt(k, n), lt(n, m))

    assert session.follows(chain, le(add(k, 2), m))
    asked = len(solver.queries)
    assert session.follows((le(t, k), *chain), le(add(k, 2), m))
    assert len(solver.queries) == asked


def test_hypotheses_that_two_proofs_share_are_asked_for_alone() -> None:
    solver = Recording()
    session = Session(solver)
    chain, goal = (lt(k, n), lt(n, m)), le(add(k, 2), m)

    assert session.follows((*chain, le(t, k)), goal)
    assert session.follows((*chain, le(t, n)), goal)
    assert set(solver.queries[-1].assertions) == {*chain, negate(goal)}
    asked = len(solver.queries)
    assert session.follows((*chain, le(t, m)), goal)
    assert len(solver.queries) == asked


def test_a_proof_by_contradictory_hypotheses_says_nothing_about_the_others() -> None:
    session = Session(Z3())
    never = eq(mul(t, 2), add(mul(m, 4), j)), eq(mod(j, 2), 1)

    assert session.follows((lt(k, n), *never), le(add(k, 2), n))
    assert not session.follows((lt(k, n), le(n, add(k, 1))), le(add(k, 2), n))
    assert not session.follows((lt(k, n),), le(add(k, 2), n))


def test_what_proofs_share_may_not_suffice() -> None:
    solver = Recording()
    session = Session(solver)
    goal = le(add(k, 2), m)

    assert session.follows((lt(k, n), lt(n, m)), goal)
    assert session.follows((lt(k, n), le(add(n, 1), add(m, -1)), le(t, k)), goal)
    assert not session.follows((lt(k, n), le(t, n)), goal)
    asked = len(solver.queries)
    assert not session.follows((lt(k, n), le(t, m)), goal)
    assert len(solver.queries) <= asked + 1


@pytest.mark.parametrize("backend", [Z3(), Cvc5()], ids=["z3", "cvc5"])
def test_a_model_with_elements_of_an_array_answers_another_question(backend: Z3 | Cvc5) -> None:
    a, b = read("a", (k,)), read("a", (add(k, 1),))
    asked = (le(3, a), lt(a, b), lt(k, n))
    answer = backend.check(Query(asked), Budget())
    assert isinstance(answer, Sat)
    at = answer.model[k.symbol]
    assert 3 <= answer.elements["a", (at,)] < answer.elements["a", (at + 1,)]

    session = Session(backend)
    assert not session.follows(asked[1:], lt(a, 3))
    before = session.stats.reached_smt + session.stats.enumerated
    assert not session.follows(asked[1:], lt(b, 4))
    assert session.follows(asked, lt(3, b))
    assert (session.stats.reached_smt + session.stats.enumerated, session.stats.memory_hits) == (before + 1, 1)


def test_an_element_is_one_number() -> None:
    """What is true of `a[k]` is true of `a[n]` where k = n, whatever an earlier model said of both."""
    session = Session(Z3())
    a, b = read("a", (k,)), read("a", (n,))
    assert not session.follows([], eq(a, b))
    assert session.follows([eq(k, n)], eq(a, b))


def test_follows_still_proves_goals() -> None:
    session = Session(Z3())
    tiles = lt(k, ceil_div(n, 128))

    assert not session.follows([tiles], lt(mul(k, 129), n))
    assert session.follows([tiles], lt(mul(k, 128), n))
    assert session.follows([tiles], lt(mul(k, 128), n))
    assert isinstance(session.prove([tiles], lt(mul(k, 128), n)), Unsat)


def test_contradiction_among_sliced_hypotheses_outweighs_a_model() -> None:
    session = Session(Z3())
    parity = [eq(mod(t, 2), 0), eq(mod(t, 4), 1)]

    assert not session.follows([lt(k, n)], le(add(k, 2), n))
    assert session.follows([lt(k, n), *parity], le(add(k, 2), n))


def test_a_model_for_another_question_is_never_a_counterexample() -> None:
    alone, after = Session(Z3()), Session(Z3())
    goal = le(n, add(k, 3))

    assert not after.follows([lt(k, n)], le(n, add(k, 50)))
    assert not after.follows([lt(k, n)], goal)
    assert after.prove([lt(k, n)], goal) == alone.prove([lt(k, n)], goal)


def test_sizes_of_an_earlier_model_answer_what_the_solver_cannot() -> None:
    solver = Recording(most=3)
    session = Session(solver)
    product = mul(mul(n, m), sym(Symbol("l", "size", 1, None)))
    found = session.check([lt(40, product)])
    inner = lt(k, floordiv(product, 8))

    assert isinstance(found, Sat)
    assert not session.follows([inner], le(ceil_div(product, 8), add(k, 2)))
    assert isinstance(session.prove([inner], le(ceil_div(product, 8), add(k, 2))), GaveUp)


def test_one_part_shows_that_not_all_follow() -> None:
    solver = Recording(most=2)
    places = [sym(Symbol(f"p{each}", "fresh", 0, 7)) for each in range(6)]
    session = Session(solver)

    assert not session.follows([lt(k, n)], all_of(lt(add(k, each, 1), n) for each in places))
    assert isinstance(session.prove([lt(k, n)], all_of(lt(add(k, each, 2), n) for each in places)), GaveUp)


def test_what_gave_up_does_not_follow() -> None:
    assert not Session(Recording(most=1)).follows([lt(k, n)], le(k, add(n, t)))


def test_elements_of_arrays_are_left_to_the_solver() -> None:
    session = Session(Z3())
    element = read("a", (k,))

    assert not session.follows([lt(k, n)], lt(add(k, 1), n))
    assert session.follows([lt(k, n), lt(element, k)], lt(element, n))
    assert not session.follows([lt(k, n), lt(element, k)], lt(add(element, 2), n))


def test_a_cache_separates_answers_by_any_model(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = Session(Recording(), cache=cache)
    second = Session(Recording(most=0), cache=cache)
    goal = le(n, add(k, 3))
    assert not first.follows([lt(k, n)], le(n, add(k, 50)))
    assert not first.follows([lt(k, n)], goal)

    assert not second.follows([lt(k, n)], goal)
    assert isinstance(second.prove([lt(k, n)], goal), GaveUp)
    cache.close()


# -- prove_each ------------------------------------------------------------------------------------------------------

FACTS = (lt(k, ceil_div(n, 128)), le(n, 1 << 20))
GOOD = (lt(mul(k, 128), n), le(mul(k, 256), 1 << 22), le(k, 1 << 13))


def test_goals_that_follow_take_one_query() -> None:
    solver = Recording()
    session = Session(solver)

    assert all(isinstance(each, Unsat) for each in session.prove_each(FACTS, GOOD))
    assert len(solver.queries) == 1
    assert isinstance(session.prove(FACTS, GOOD[1]), Unsat)
    assert len(solver.queries) == 1


def test_a_failing_goal_is_separated_from_the_others() -> None:
    session = Session(Z3())
    answers = session.prove_each(FACTS, (*GOOD, le(k, 100), GOOD[0]))

    assert [type(each) for each in answers] == [Unsat, Unsat, Unsat, Sat, Unsat]
    assert answers[3] == Session(Z3()).prove(FACTS, le(k, 100))


@pytest.mark.parametrize("given", [(), (le(n, 8),), (le(m, 8),)])
def test_a_divisor_in_one_goal_presumes_nothing_for_another(given: tuple[Cond, ...]) -> None:
    """A query speaks only of where all its divisors are positive: asked as one, the second would seem to follow."""
    goals = (le(floordiv(m, n), m), le(1, n), le(mod(m, n), n), le(1, mul(n, n)))

    answers = Session(Z3()).prove_each(given, goals)

    assert [type(each) for each in answers] == [type(Session(Z3()).prove(given, goal)) for goal in goals]
    assert isinstance(answers[1], Sat)
    assert isinstance(answers[3], Sat)


def test_divisors_that_are_known_to_be_positive_keep_goals_together() -> None:
    solver = Recording()
    goals = (le(floordiv(m, n), m), le(mod(m, n), n), le(floordiv(m, add(n, 1)), m))

    assert all(isinstance(each, Unsat) for each in Session(solver).prove_each([le(2, mul(n, n)), le(n, 9)], goals))
    assert len(solver.queries) <= 4


def test_goals_together_have_few_steps_and_each_its_own() -> None:
    solver = Recording(most=2)
    goals = [lt(add(k, 1), add(n, each)) for each in (1, 2)]
    far = lt(k, add(n, t))

    answers = Session(solver, Budget.about(7.0)).prove_each([lt(k, n)], (*goals, far))

    assert [type(each) for each in answers] == [Unsat, Unsat, GaveUp]
    assert solver.steps[0] == STEPS_PER_SECOND
    assert 7 * STEPS_PER_SECOND in solver.steps[1:]


# -- what these rest on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "denied", "expected"),
    [
        ([le(k, 0)], negate(eq(mod(add(mul(k, 32), 5), add(n, 1)), mod(const(5), add(n, 1)))), True),
        ([le(k, 3), le(3, k)], negate(eq(add(k, n), add(n, 3))), True),
        ([le(k, 3), le(4, k)], lt(n, m), True),
        ([eq(k, 3), le(n, add(k, -3))], lt(0, n), True),
        ([le(k, 1)], negate(eq(mul(k, n), 0)), False),
        ([le(k, 0)], le(floordiv(n, k), 4), False),
        ([le(k, 3), le(3, k)], lt(k, n), False),
    ],
)
def test_symbols_with_one_number(pieces: Sequence[Cond], denied: Cond, expected: bool) -> None:
    assert contradicts_by_bounds(pieces, denied) is expected


@pytest.mark.parametrize(
    ("condition", "model", "expected"),
    [
        (lt(k, n), {"k": 2, "n": 3}, True),
        (lt(k, n), {"k": 3, "n": 3}, False),
        (lt(k, n), {"n": 1}, True),
        (any_of((le(floordiv(k, n), 7), le(k, 9))), {"k": 2, "n": 0}, False),
        (any_of((le(floordiv(k, n), 7), le(k, 9))), {"k": 2, "n": 1}, True),
        (le(read("a", (k,)), n), {"k": 2, "n": 1}, True),
        (le(1, read("a", (k,))), {"k": 2, "n": 1}, False),
    ],
)
def test_a_witness_satisfies_what_is_defined_and_holds(condition: Cond, model: dict[str, int], expected: bool) -> None:
    witness = Witness({each.symbol: model[each.symbol.name] for each in (k, n) if each.symbol.name in model})

    assert witness.satisfies((condition,)) is expected


def test_the_witness_of_use_comes_first() -> None:
    known = Witnesses()
    for number in range(40):
        known.add(Witness({n.symbol: number}))

    assert known.of((le(n, 3),)) is None
    found = known.of((le(n, 20),))
    assert found is not None
    assert found.model == {n.symbol: 20}
    assert known.latest(1) == (found,)


def test_a_witness_serves_at_the_upper_ends_of_the_ranges_of_other_symbols() -> None:
    known = Witnesses()
    known.add(Witness({n.symbol: 300}))

    assert known.of((le(256, t), le(n, 400))) is None
    found = known.of((le(200, t), le(n, 400)))
    assert found is not None
    assert found.model == {n.symbol: 300, t.symbol: 255}


def _linear(expression: Index) -> Cond:
    return lt(k, floordiv(expression, 8))


def test_an_instance_has_numbers_for_the_sizes_it_multiplies() -> None:
    made = linear_instance((_linear(mul(n, m)), lt(k, n)), {n.symbol: 4, m.symbol: 6})

    assert made == ((lt(k, 3), lt(k, 4)), {n.symbol: 4, m.symbol: 6})
    assert linear_instance((lt(mul(k, k), n),), {n.symbol: 4}) is None
    assert linear_instance((lt(mul(n, m), 8),), {n.symbol: 4, m.symbol: 6}) is None
    assert linear_instance((lt(floordiv(k, n), 8),), {n.symbol: 0}) is None
