"""The conformance suite: queries with known answers, for built-in and third-party backends alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, cast

from attrs import frozen

from argus.core.algebra import (
    add,
    all_of,
    any_of,
    bit_and,
    bit_or,
    bit_xor,
    ceil_div,
    const,
    eq,
    floordiv,
    held,
    implies,
    le,
    linear,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    negate,
    pick,
    read,
    shift_left,
    shift_right,
    sub,
    sym,
)
from argus.core.index import Bin, Cond, Const, Held, Index, Read, Symbol
from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import topological
from argus.solvers.base import Capabilities, Solver
from argus.solvers.model import fault

Expected = Literal["sat", "unsat"]
_BUDGET = Budget()


@frozen
class Example:
    """A query with its expected answer."""

    name: str
    query: Query
    expected: Expected


@frozen
class Failure:
    """An answer that violates the contract, and how."""

    example: Example
    answer: Answer
    problem: str


def conformance(solver: Solver, budget: Budget = _BUDGET) -> tuple[Failure, ...]:
    """The examples on which the solver violates the contract.

    It answers wrongly, raises, answers the same query in two ways, or gives up although it declares the capabilities
    that the query needs. Each query is asked twice, the second time after all others.
    """
    suite = examples()
    first = [_check_example(solver, example, budget) for example in suite]
    again = [_check_example(solver, example, budget) for example in suite]
    failures = [
        Failure(example, answer, raised or _problem(solver, example, answer) or _inconsistency(answer, later))
        for example, (answer, raised), (later, _) in zip(suite, first, again, strict=True)
    ]
    return tuple(failure for failure in failures if failure.problem)


def _check_example(solver: Solver, example: Example, budget: Budget) -> tuple[Answer, str]:
    """The answer, and the problem if `check` raised or returned something else."""
    try:
        answer = cast(object, solver.check(example.query, budget))
    except Exception as error:  # noqa: BLE001 reason: foreign code may raise anything
        problem = f"raises {type(error).__name__}: {error}"
        return GaveUp(solver.name, problem), problem
    if isinstance(answer, Unsat | Sat | GaveUp):
        return answer, ""
    problem = f"answers with a {type(answer).__name__}"
    return GaveUp(solver.name, problem), problem


def _inconsistency(first: Answer, second: Answer) -> str:
    """A solver with a wall-clock limit may give up on one of two equal queries."""
    if isinstance(first, GaveUp) or isinstance(second, GaveUp) or first == second:
        return ""
    return "answers equal queries differently"


def needs(query: Query) -> Capabilities:
    """The capabilities that deciding the query takes."""
    nodes = topological(query.assertions)
    operators = [node for node in nodes if isinstance(node, Bin)]
    divisions = [node for node in operators if node.op in ("//", "%")]
    return Capabilities(
        unbounded=any(symbol.low is None or symbol.high is None for symbol in query.symbols),
        nonlinear=any(n.op == "*" for n in operators) or any(not isinstance(n.right, Const) for n in divisions),
        bitwise=any(n.op in ("&", "|", "^", "<<", ">>") for n in operators),
        reads=any(isinstance(node, Read | Held) for node in nodes),
    )


def _problem(solver: Solver, example: Example, answer: Answer) -> str:
    match answer:
        case Unsat():
            return "" if example.expected == "unsat" else "answers unsat to a satisfiable query"
        case Sat(model=model) if example.expected == "sat":
            wrong = fault(example.query, model)
            return f"gives a wrong model: {wrong}" if wrong is not None else ""
        case Sat():
            return "answers sat to an unsatisfiable query"
        case GaveUp(reason=reason):
            able = solver.capabilities.covers(needs(example.query))
            return f"gives up within its capabilities: {reason}" if able else ""


# -- the queries -----------------------------------------------------------------------------------------


def examples() -> tuple[Example, ...]:
    """Every query of the suite, over bounded and, where possible, unbounded symbols."""
    sections = (_constants, _division, _choices, _divisors, _kernels, _bits, _elements)
    return tuple(example for section in sections for example in section())


def _ask(name: str, expected: Expected, *assertions: Cond) -> Example:
    return Example(name, Query(assertions), expected)


def _valid(name: str, goal: Cond, *hypotheses: Cond) -> Example:
    return _ask(name, "unsat", *hypotheses, negate(goal))


def _refuted(name: str, goal: Cond, *hypotheses: Cond) -> Example:
    return _ask(name, "sat", *hypotheses, negate(goal))


def _free(names: str) -> Sequence[Index]:
    return [sym(Symbol(name, "fresh")) for name in names.split()]


def _within(low: int, high: int, names: str) -> Sequence[Index]:
    return [sym(Symbol(name, "fresh", low, high)) for name in names.split()]


def _constants() -> Iterator[Example]:
    (x,) = _free("x")
    (small,) = _within(-2, 2, "s")
    (never,) = _within(3, 1, "never")
    yield _ask("no assertion", "sat")
    yield _ask("an unbounded symbol", "sat", le(1_000_000, x))
    yield _ask("a range is a fact, from below", "sat", le(small, -2))
    yield _ask("an empty range", "unsat", le(never, x))
    yield _ask("strictly between neighbours", "unsat", lt(0, mul(x, 2)), lt(mul(x, 2), 2))
    yield _ask("beyond 64 bits", "sat", eq(x, linear([(const(1), 1 << 70)], 5)))


def _division() -> Iterator[Example]:
    x, y = _free("x y")
    (z,) = _within(-20, 20, "z")
    for value, low in ((x, "unbounded"), (z, "bounded")):
        yield _valid(f"floor division below zero ({low})", eq(floordiv(value, 4), -2), eq(value, -5))
        yield _valid(f"remainder below zero ({low})", eq(mod(value, 4), 3), eq(value, -5))
        yield _refuted(f"truncation is not floor ({low})", le(0, floordiv(value, 4)), lt(-4, value))
        yield _valid(f"division then remainder ({low})", eq(floordiv(mod(value, 12), 4), mod(floordiv(value, 4), 3)))
        yield _valid(f"remainder of a sum ({low})", eq(mod(add(mod(value, 6), 1), 3), mod(add(value, 1), 3)))
        yield _refuted(f"nested division off by one ({low})", lt(mul(floordiv(value, 3), 3), value))
    yield _valid("division is monotone", le(floordiv(x, 7), floordiv(y, 7)), le(x, y))
    yield _refuted("remainder is not monotone", le(mod(x, 7), mod(y, 7)), le(x, y))


def _choices() -> Iterator[Example]:
    x, y, z = _free("x y z")
    yield _valid("minimum and maximum share out", eq(add(minimum(x, y), maximum(x, y)), add(x, y)))
    yield _valid("minimum distributes", le(minimum(x, y), maximum(minimum(x, z), minimum(y, z))), le(x, z))
    yield _refuted("minimum is not the first", eq(minimum(x, y), x))
    yield _valid("pick is absolute value", le(0, pick(le(0, x), x, mul(x, -1))))
    yield _refuted("pick takes one branch", eq(pick(le(x, y), x, y), x))
    yield _valid("a choice of choices", le(pick(le(x, y), minimum(x, z), minimum(y, z)), z))
    yield _valid("either way", any_of((lt(x, y), eq(x, y), lt(y, x))))
    ways = [eq(x, 3), lt(x, -7), lt(9, x)]
    for number, way in enumerate(ways):
        yield _ask(f"way {number} of several", "sat", any_of(ways), way)
    yield _ask("none of several", "unsat", any_of(ways), le(4, x), le(x, 9))
    yield _ask("unequal twice", "sat", negate(eq(x, y)), negate(eq(y, z)), eq(x, z))


def _divisors() -> Iterator[Example]:
    (x,) = _free("x")
    (free,) = _free("d")
    (a,) = _within(-9, 9, "a")
    (d,) = _within(-3, 3, "e")
    yield _valid("a divisor counts from one", le(1, d), le(mod(a, d), 8))
    yield _ask("no divisor is zero", "unsat", eq(d, 0), le(floordiv(a, d), 100))
    yield _ask("no divisor is negative", "unsat", le(d, -1), negate(eq(floordiv(a, d), 1)))
    yield _ask("a branch not taken counts too", "unsat", eq(d, 0), eq(pick(le(d, 0), a, floordiv(a, d)), a))
    yield _ask("divide by a symbol", "sat", eq(floordiv(a, d), -3), eq(mod(a, d), 1))
    yield _ask("divide by a free symbol", "sat", eq(floordiv(x, free), 5), eq(mod(x, free), 2))
    yield _valid("remainder by a symbol", lt(mod(x, free), free), le(mod(x, free), x))
    yield _valid("a dividend below its divisor", eq(floordiv(x, free), 0), le(0, x), lt(x, free))


def _kernels() -> Iterator[Example]:
    k, other = (sym(Symbol(name, "loop", 0, None)) for name in "kl")
    (size,) = [sym(Symbol("N", "size", 1, None))]
    r, s = _within(0, 127, "r s")
    b, c = _free("b c")
    yield _valid("neighbouring ring slots differ", negate(eq(mod(add(k, 1), 2), mod(k, 2))))
    yield _refuted("ring slots come round", negate(eq(mod(add(k, 3), 3), mod(other, 3))), lt(k, other))
    yield _valid("mixed radix is unique", all_of((eq(b, c), eq(r, s))), eq(_row(b, r), _row(c, s)))
    yield _refuted("a short radix is not", eq(b, c), eq(add(mul(b, 127), r), add(mul(c, 127), s)))
    tile = sym(Symbol("t", "block", 0, None))
    inside = lt(tile, ceil_div(size, 128))
    yield _valid("a tile begins in bounds", lt(mul(tile, 128), size), inside)
    yield _refuted("a tail needs its predicate", lt(add(mul(tile, 128), r), size), inside)
    yield _valid("the predicate mends it", le(_row(tile, r), sub(size, 1)), inside, lt(_row(tile, r), size))
    yield _valid("trips cover", le(size, mul(ceil_div(size, 32), 32)))
    yield from _telescope(k)


def _row(block: Index, rest: Index) -> Index:
    return add(mul(block, 128), rest)


def _telescope(k: Index) -> Iterator[Example]:
    cuts = _free("c0 c1 c2 c3")
    ordered = [le(a, b) for a, b in pairwise(cuts)]
    counts = [pick(all_of((le(a, k), lt(k, b))), 1, 0) for a, b in pairwise(cuts)]
    whole = pick(all_of((le(cuts[0], k), lt(k, cuts[-1]))), 1, 0)
    yield _valid("intervals telescope", eq(add(*counts), whole), *ordered)
    yield _refuted("unless they overlap", eq(add(*counts), whole), *ordered[1:])


def _bits() -> Iterator[Example]:
    x, y = _within(-16, 15, "x y")
    row, column = _within(0, 7, "row column")
    (n,) = _within(-1, 3, "n")
    yield _valid("and with or make the sum", eq(add(bit_and(x, y), bit_or(x, y)), add(x, y)))
    yield _valid("xor twice is nothing", eq(bit_xor(bit_xor(row, column), column), row))
    yield _valid("a swizzle stays in its row", lt(bit_xor(column, row), 8))
    yield _refuted("xor is not addition", eq(bit_xor(row, column), add(row, column)))
    yield _valid("a mask with holes", eq(bit_and(x, 10), sub(bit_and(x, 15), bit_and(x, 5))))
    yield _valid("a negative mask", eq(bit_and(x, -4), mul(floordiv(x, 4), 4)))
    yield _valid("or with a number", le(x, bit_or(x, 6)))
    yield _valid("shift there and back", eq(shift_right(shift_left(x, n), n), x))
    yield _valid("shift right is floor division", eq(shift_right(x, n), floordiv(x, 4)), eq(n, 2))
    yield _ask("no shift by less than nothing", "unsat", eq(n, -1), le(shift_left(x, n), 1000))


def _elements() -> Iterator[Example]:
    i, j, k = _free("i j k")
    at_i, at_j, at_k = (read("table", [x]) for x in (i, j, k))
    yield _valid("equal indices, equal elements", eq(at_i, at_j), eq(i, j))
    yield _valid("congruence is transitive", eq(add(at_i, 1), add(at_k, 1)), eq(i, j), eq(j, k))
    yield _valid("elements of elements", eq(read("table", [at_i]), read("table", [at_j])), eq(at_i, at_j))
    yield _refuted("other indices, other elements", eq(at_i, at_j), lt(i, j))
    yield _refuted("other arrays, other elements", eq(at_i, read("other", [i])))
    yield _refuted("an array is not a fragment", eq(at_i, held("table", [i])))
    yield _valid("two axes", implies(eq(i, j), eq(read("grid", [i, k]), read("grid", [j, k]))))
    yield _valid("an element as a bound", lt(i, add(at_j, 1)), lt(i, at_k), eq(j, k))
