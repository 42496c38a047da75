"""Reductions over a flattened index as nests over its digits.

A sum over k in [0, n m) is the sum over j in [0, n) of that over i in [0, m), of the body at k = m j + i. A program
that names `k // m` and `k % m` and a formula over two variables then have one form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import count

from argus.core import algebra
from argus.core.index import Bin, Cond, Const, Index, Node, Sum, Symbol
from argus.core.values.expr import Expr, Reduce, reduce_
from argus.core.values.rewriting import bound_variables, map_parts, nodes, own_integers
from argus.core.walk import fold, rebuild, symbols, topological

_DEPTH = 8
"""Digits of one index, at most."""


def by_digits(root: Expr) -> Expr:
    """The expression with each reduction from 0 over a product of extents, by which its index is divided, as a nest."""
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            same = map_parts(node, visit, lambda index: index, lambda cond: cond)
            done[node] = _nest(same, _DEPTH) if isinstance(same, Reduce) else same
        return done[node]

    return visit(root)


def _nest(of: Reduce, depth: int) -> Reduce:
    if not depth or of.low is not algebra.const(0):
        return of
    for low in _divisors(of):
        high = quotient(of.high, low)
        if high is not None and high is not algebra.const(1) and _at_least_0(low):
            return _split(of, high, low, depth)
    return of


def _at_least_0(extent: Index) -> bool:
    least = extent.range[0]
    return least is not None and least >= 0


def _split(of: Reduce, high: Index, low: Index, depth: int) -> Reduce:
    """The reduction over low * j + i. Where `low` is 0 there is no element, neither before nor after."""
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

    body = _nest(reduce_(of.op, lower, 0, low, inner(of.body), cond(of.where)), depth - 1)
    return _nest(reduce_(of.op, upper, 0, high, body), depth - 1)


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
    """q with q * by = of, for products of numbers and atoms; None if there is none. `by` has a factor above 0."""
    (number, own), (divisor, others) = _factors(of), _factors(by)
    if divisor < 1 or number % divisor or others - own:
        return None
    found = reduce(algebra.mul, (own - others).elements(), algebra.const(number // divisor))
    return found if algebra.mul(found, by) is of else None


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
