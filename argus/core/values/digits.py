"""Reductions over a flattened index as nests over its digits.

A sum over k in [0, n m) is the sum over j in [0, n) of that over i in [0, m), of the body at k = m j + i. A program
that names `k // m` and `k % m` and a formula over two variables then have one form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import count

from argus.core import algebra, interval
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cond, Const, Index, Node, Sum, Symbol
from argus.core.values.expr import Expr, Reduce, reduce_
from argus.core.values.rewriting import bound_variables, map_parts, nodes, own_integers
from argus.core.walk import fold, rebuild, symbols, topological

_DEPTH = 8
"""Digits of one index, at most."""


def _in_range(extent: Index) -> bool:
    least = extent.range[0]
    return least is not None and least >= 0


def by_digits(root: Expr, at_least_0: Callable[[Index], bool] = _in_range) -> Expr:
    """The expression with each reduction from 0 over a product of extents, by which its index is divided, as a nest.

    at_least_0: whether an extent is known to be 0 or more.
    """
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            same = map_parts(node, visit, lambda index: index, lambda cond: cond)
            done[node] = _nest(same, _DEPTH, at_least_0) if isinstance(same, Reduce) else same
        return done[node]

    return visit(root)


def _nest(of: Reduce, depth: int, at_least_0: Callable[[Index], bool]) -> Reduce:
    if not depth or of.low is not algebra.const(0):
        return of
    for low in _divisors(of):
        high = quotient(of.high, low)
        if high is not None and high is not algebra.const(1) and (at_least_0(low) or at_least_0(high)):
            upper, inner = _split(of, high, low)
            body = _nest(inner, depth - 1, at_least_0)
            return _nest(reduce_(of.op, upper, 0, high, body), depth - 1, at_least_0)
    return of


def _split(of: Reduce, high: Index, low: Index) -> tuple[Symbol, Reduce]:
    """The digit j and the reduction over i of the body at low * j + i, where low or high is at least 0.

    If one is 0 or both differ in sign, there is no element, neither before nor after.
    """
    upper, lower = _digit(of, "'", high), _digit(of, '"', low)
    j, i = algebra.sym(upper), algebra.sym(lower)

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if node is algebra.sym(of.variable):
            return algebra.add(algebra.mul(j, low), i)
        if isinstance(node, Bin) and node.op in ("//", "%") and node.left is algebra.sym(of.variable):
            rest = quotient(node.right, low)
            if rest is not None and node.op == "//":
                return algebra.floordiv(j, rest)
            if rest is not None:
                return algebra.add(algebra.mul(algebra.mod(j, rest), low), i)
        return rebuild(node, parts) if parts else node

    def index(at: Index) -> Index:
        return fold(at, visit)  # pyright: ignore[reportReturnType]  # an index stays one

    def cond(test: Cond) -> Cond:
        return fold(test, visit)  # pyright: ignore[reportReturnType]  # a condition stays one

    done: dict[Expr, Expr] = {}

    def inner(node: Expr) -> Expr:
        if node not in done:
            done[node] = map_parts(node, inner, index, cond)
        return done[node]

    return upper, reduce_(of.op, lower, 0, low, inner(of.body), cond(of.where))


def _divisors(of: Reduce) -> Iterator[Index]:
    """What the variable is divided by, the fewest factors first."""
    roots = [each for node in nodes(of.body) for own in own_integers(node) for each in own]
    found = {
        node.right
        for node in topological((*roots, of.where))
        if isinstance(node, Bin) and node.op in ("//", "%") and node.left is algebra.sym(of.variable)
    }
    yield from sorted(found, key=lambda each: (sum(_factors(each)[1].values()), each.digest))


def _digit(of: Reduce, mark: str, extent: Index) -> Symbol:
    """A variable that does not occur in the reduction."""
    own = [each for node in nodes(of) for parts in own_integers(node) for each in parts]
    taken = {each.name for each in (*symbols(*own), *bound_variables(of))}
    name = next(made for number in count(1) if (made := of.variable.name + mark * number) not in taken)
    most = extent.range[1]
    return Symbol(name, "fresh", 0, None if most is None else max(0, most - 1))


def quotient(of: Index, by: Index) -> Index | None:
    """q with q * by = of, for products of numbers and atoms, and for sums of such products; None if there is none.

    `by` has a factor above 0, or is a sum.
    """
    if isinstance(by, Sum) and isinstance(of, Sum) and len(by.terms) > 1:
        return _quotient_of_sums(of, by)
    (number, own), (divisor, others) = _factors(of), _factors(by)
    if divisor < 1 or number % divisor or others - own:
        return None
    found = reduce(algebra.mul, (own - others).elements(), algebra.const(number // divisor))
    return found if algebra.mul(found, by) is of else None


def _quotient_of_sums(of: Sum, by: Sum) -> Index | None:
    """The same from the terms that a first term of the sum may be a multiple of."""
    (first, number), *_ = of.terms
    tried = (
        quotient(algebra.mul(first, number if factor > 0 else -number), algebra.mul(atom, abs(factor)))
        for atom, factor in by.terms
    )
    return next((each for each in tried if each is not None and algebra.mul(each, by) is of), None)


def _factors(of: Index) -> tuple[int, Counter[Index]]:
    """The number and the atoms whose product an expression is."""
    match of:
        case Const(value=value):
            return value, Counter()
        case Sum(terms=((atom, factor),), constant=0):
            number, atoms = _factors(atom)
            return factor * number, atoms
        case Bin(op="*", left=left, right=right):
            (one, first), (two, second) = _factors(left), _factors(right)
            return one * two, first + second
        case _:
            return 1, Counter([of])


def without_low_digits(index: Index) -> Index:
    """The sum with quotients (g a + b) // (g d) as a // d, where 0 <= b < g, whatever is in them."""
    for atom, factor in linear_terms(index)[0]:
        if isinstance(atom, Bin) and atom.op == "//" and isinstance(atom.right, Const) and atom.right.value > 0:
            high = _of_high_digits(atom.left, atom.right.value)
            if high is not None:
                index = algebra.add(index, algebra.mul(algebra.sub(high, atom), factor))
    return index


def _of_high_digits(number: Index, divisor: int) -> Index | None:
    """`number // divisor` without the part that is less than the least digit of the others; None if there is none."""
    terms, constant = linear_terms(number)
    steps = sorted({abs(factor) for _, factor in terms if divisor % abs(factor) == 0 and abs(factor) > 1})
    for step in steps:
        high = [(atom, factor // step) for atom, factor in terms if factor % step == 0]
        low = algebra.linear([each for each in terms if each[1] % step], constant % step)
        if len(high) < len(terms) and interval.within(low.range, 0, step - 1):
            return algebra.floordiv(algebra.linear(high, constant // step), divisor // step)
    return None
