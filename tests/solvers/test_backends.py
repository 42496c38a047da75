"""Properties of each SMT backend beyond the conformance suite."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from argus.core.algebra import add, all_of, any_of, bit_xor, eq, le, lt, mul, sym
from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.z3_backend import Z3, Z3Text

BOTH = pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=lambda solver: solver.name)
x, y, z = (sym(Symbol(name, "size", 1, None)) for name in "xyz")


@BOTH
def test_model_assigns_every_symbol_by_identity(solver: Solver) -> None:
    low, high = Symbol("n", "loop", 0, 5), Symbol("n", "block", 5, 9)

    answer = solver.check(Query((le(sym(high), sym(low)), le(sym(low), mul(x, y)))), Budget())

    assert isinstance(answer, Sat)
    assert (answer.model[low], answer.model[high]) == (5, 5)
    assert set(answer.model) == {low, high, x.symbol, y.symbol}


@BOTH
@pytest.mark.parametrize("size", [1 << 31, -(1 << 31) - 1, 1 << 32, 1 << 63, 1 << 200])
def test_numbers_of_any_size(solver: Solver, size: int) -> None:
    free = sym(Symbol("f", "fresh"))

    answer = solver.check(Query((eq(free, size),)), Budget())

    assert answer == Sat(solver.name, {free.symbol: size})
    assert solver.check(Query((lt(mul(free, 2), size), lt(size, mul(free, 2)))), Budget()) == Unsat(solver.name)


@BOTH
def test_a_query_out_of_budget_is_given_up(solver: Solver) -> None:
    cubes = Query((eq(add(mul(mul(x, x), x), mul(mul(y, y), y)), mul(mul(z, z), z)),))

    answer = solver.check(cubes, Budget.about(0.05))

    assert isinstance(answer, GaveUp)
    assert answer.exhausted
    assert solver.name in answer.reason


@pytest.mark.parametrize("solver", [Z3(), Z3Text()], ids=lambda solver: solver.name)
def test_an_interrupt_is_no_answer(solver: Solver) -> None:
    cubes = Query((eq(add(mul(mul(x, x), x), mul(mul(y, y), y)), mul(mul(z, z), z)),))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    try:
        press.start()
        with pytest.raises(KeyboardInterrupt):
            solver.check(cubes, Budget.about(200.0))
    finally:
        press.join()
        signal.signal(signal.SIGINT, before)


@BOTH
def test_inexpressible_queries_are_given_up(solver: Solver) -> None:
    answer = solver.check(Query((eq(bit_xor(x, y), z),)), Budget())

    assert answer == GaveUp(solver.name, "`^`, neither of whose operands is a number or has few bits")


@pytest.mark.share(12, among="deep expressions")
@BOTH
def test_deep_conditions_do_not_overflow(solver: Solver) -> None:
    condition = le(x, 3)
    for step in range(5000):
        condition = any_of([eq(y, step), all_of([condition, le(z, step)])])

    assert isinstance(solver.check(Query((condition,)), Budget()), Sat)


@BOTH
def test_threads_get_the_answers_of_one(solver: Solver) -> None:
    questions = [Query((lt(mul(x, 3), n), lt(n - 2, mul(x, 3)))) for n in range(2, 34)]

    def ask(question: Query) -> Answer:
        return solver.check(question, Budget())

    alone = [ask(question) for question in questions]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(ask, questions))

    assert together == alone


@BOTH
def test_seed_of_any_size_is_taken(solver: Solver) -> None:
    assert isinstance(solver.check(Query((le(x, y),)), Budget(seed=1 << 40)), Sat)


def test_importing_the_folder_loads_no_solver() -> None:
    code = (
        "import sys, argus.solvers.session.session, argus.solvers.portfolio; print({'z3', 'cvc5'} & set(sys.modules))"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603 reason: our own interpreter

    assert printed.strip() == "set()"
