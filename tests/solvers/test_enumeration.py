from __future__ import annotations

from argus.core.algebra import add, bit_xor, eq, floordiv, le, lt, mul, negate, read, shift_left, sym
from argus.core.index import Symbol
from argus.core.query import Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.enumeration import Enumerate

a = sym(Symbol("a", "thread", 0, 299))
b = sym(Symbol("b", "thread", -3, 496))
d = sym(Symbol("d", "fresh", -2, 2))
free = sym(Symbol("n", "size", 1, None))
solver = Enumerate()


def reason(query: Query, budget: Budget | None = None) -> str:
    answer = solver.check(query, budget or Budget())
    assert isinstance(answer, GaveUp)
    return answer.reason


def test_finds_the_first_assignment_across_chunks() -> None:
    answer = solver.check(Query((le(290, a), le(495, b))), Budget())

    assert answer == Sat("enumerate", {a.symbol: 290, b.symbol: 495})


def test_exhaustion_is_a_proof() -> None:
    assert solver.check(Query((negate(eq(bit_xor(bit_xor(a, b), b), a)),)), Budget()) == Unsat("enumerate")


def test_undefined_assignments_do_not_count() -> None:
    assert solver.check(Query((lt(d, 1), le(floordiv(a, d), 10_000))), Budget()) == Unsat("enumerate")
    found = solver.check(Query((eq(floordiv(a, d), 7),)), Budget())

    assert found == Sat("enumerate", {a.symbol: 7, d.symbol: 1})


def test_negative_shifts_do_not_count() -> None:
    assert solver.check(Query((lt(shift_left(a, d), shift_left(a, 0)),)), Budget()) == Unsat("enumerate")


def test_gives_up_beyond_its_means() -> None:
    assert "no finite range" in reason(Query((le(a, free),)))
    assert "150000 assignments exceed the budget of 100" in reason(Query((le(a, b),)), Budget(points=100))
    assert "array element" in reason(Query((le(read("t", [a]), 3),)))
    assert "64 bits" in reason(Query((le(mul(a, 1 << 60), add(b, 5)),)))
    assert "64 bits" in reason(Query((le(shift_left(a, b), 5),)))


def test_gives_up_out_of_time_but_never_on_the_last_chunk() -> None:
    hopeless = Query((le(a, b), lt(add(b, 3), a)))

    assert "out of time after 65536 of 150000" in reason(hopeless, Budget(seconds=0.0))
    assert isinstance(solver.check(Query((eq(mul(d, d), 3),)), Budget(seconds=0.0)), Unsat)


def test_queries_without_symbols_and_with_empty_ranges() -> None:
    never = sym(Symbol("e", "fresh", 2, 1))

    assert solver.check(Query(()), Budget()) == Sat("enumerate", {})
    assert solver.check(Query((le(never, a),)), Budget()) == Unsat("enumerate")
