"""Expressions of cells: traversal, substitution, and the marks of what is not known.

A value that is not known is a function whose name begins with `?`. It may stand in a branch that is never taken; an
output whose expression still has one has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import inf, isfinite

from argus.core import algebra
from argus.core.index import Bin, Cond, Index, Node, Symbol
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Number,
    Reduce,
    Test,
    Whole,
    choose,
    expr,
    fn,
    infinity,
    reduce_,
)
from argus.core.values.numbers import number_where
from argus.core.values.rewriting import map_parts, nodes, parts
from argus.core.walk import fold, mentions, rebuild, substitute, symbols

HEAD = "@"
"""Begins the name of the pseudo tensor of a register tile at the head of a loop: [register number, loop variable]."""


def unknown(reason: str) -> Expr:
    """A value of which nothing is known."""
    return fn(f"?{reason}")


def number(value: float) -> Expr:
    """A literal of a program. Raises ValueError for NaN."""
    if isfinite(value):
        return expr(Fraction(value))
    if value in (inf, -inf):
        return infinity(1 if value > 0 else -1)
    raise ValueError("NaN is not a value")


def chosen(test: Test, then: Expr, other: Expr) -> Expr:
    """A choice; a decided one is its branch, and one of the two values that it compares their maximum or minimum.

    A comparison of integers is a condition on them, and one of a number with itself, as a test for NaN, is decided.
    """
    if isinstance(test, Compare):
        test = of_integers(test) if test.left is not test.right else _of_itself(test)
    if test is algebra.TRUE or then is other:
        return then
    if isinstance(test, Compare) and test.op != "==" and {then, other} == {test.left, test.right}:
        return fn("min" if then is test.left else "max", test.left, test.right)
    return other if test is algebra.FALSE else choose(test, then, other)


def _of_itself(test: Compare) -> Test:
    """A comparison of a value with itself, decided if it is a number or -inf: what has no value is not itself."""
    of = test.left
    open_ = any(isinstance(each, Element) and each.tensor.startswith(HEAD) for each in nodes(of))
    if open_ or number_where(of) is None:
        return test
    return algebra.FALSE if test.op == "<" else algebra.TRUE


def of_integers(test: Compare) -> Test:
    """A comparison of integers as a condition; any other as it is."""
    left, right = (integer(each) for each in (test.left, test.right))
    if left is None or right is None:
        return test
    relations = {"<": algebra.lt, "<=": algebra.le, "==": algebra.eq}
    return relations[test.op](left, right)


def integer(of: Expr) -> Index | None:
    """The integer that the value is; None if it is not written as one."""
    match of:
        case Whole(index=index):
            return index
        case Number(value=value) if value.denominator == 1:
            return algebra.const(int(value))
        case _:
            return None


def extremum(name: str, a: Expr, b: Expr) -> Expr:
    """max or min of two values, without one that changes nothing; of integers, an integer."""
    whole = [each for each in (integer(a), integer(b)) if each is not None]
    if len(whole) == 2:
        return expr(algebra.maximum(*whole) if name == "max" else algebra.minimum(*whole))
    return without_neutral(fn(name, a, b))


def plus(a: Expr, b: Expr) -> Expr:
    """a + b, without a 0."""
    zero = expr(0)
    return b if a is zero else a if b is zero else fn("add", a, b)


def without_neutral(of: Expr) -> Expr:
    """The expression, or one of its two operands if the other one changes nothing."""
    if isinstance(of, Fn) and of.name == "sub" and of.args[1] is expr(0):
        return of.args[0]
    neutral: dict[str, Expr] = {"add": expr(0), "max": infinity(-1), "min": infinity(1)}
    if not isinstance(of, Fn) or of.name not in neutral:
        return of
    own = neutral[of.name]
    left = [each for each in of.args if each is not own]
    return left[0] if len(left) == 1 and len(of.args) == 2 else of


def _index_itself(index: Index) -> Index:
    return index


def _cond_itself(cond: Cond) -> Cond:
    return cond


def mapped(
    root: Expr, on_expr: Callable[[Expr], Expr], on_index: Callable[[Index], Index], on_cond: Callable[[Cond], Cond]
) -> Expr:
    """The expression with its direct parts replaced; a choice that is decided then is its branch."""
    return map_parts(root, on_expr, on_index, on_cond, chosen)


def replaced(root: Expr, names: Mapping[Symbol, Index]) -> Expr:
    """The expression with symbols replaced; no replacement may mention a bound variable."""
    done: dict[Expr, Expr] = {}
    made: dict[Node, Node] = {}

    def visit(node: Expr) -> Expr:
        if all_symbols(node).isdisjoint(names):
            return node
        if node not in done:
            own = isinstance(node, Reduce) and node.variable in names
            done[node] = shadowed(node) if own and isinstance(node, Reduce) else mapped(node, visit, index, cond)
        return done[node]

    def shadowed(node: Reduce) -> Expr:
        rest = {symbol: value for symbol, value in names.items() if symbol != node.variable}
        where = substitute(node.where, rest)
        return reduce_(node.op, node.variable, index(node.low), index(node.high), replaced(node.body, rest), where)

    def index(at: Index) -> Index:
        return substitute(at, names, known=made)

    def cond(test: Cond) -> Cond:
        return substitute(test, names, known=made)

    return visit(root)


def without_remainders(root: Expr) -> Expr:
    """The expression with x % d as x - d (x // d), so that a coordinate is the sum of its digits."""

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        made = rebuild(node, parts) if parts else node
        if not isinstance(made, Bin) or made.op != "%":
            return made
        return algebra.sub(made.left, algebra.mul(algebra.floordiv(made.left, made.right), made.right))

    def index(of: Index) -> Index:
        return fold(of, visit) if mentions(of, (Bin,)) else of  # pyright: ignore[reportReturnType]  # an index stays one

    def cond(of: Cond) -> Cond:
        return fold(of, visit) if mentions(of, (Bin,)) else of  # pyright: ignore[reportReturnType]

    done: dict[Expr, Expr] = {}

    def expression(node: Expr) -> Expr:
        if node not in done:
            done[node] = mapped(node, expression, index, cond)
        return done[node]

    return expression(root)


@lru_cache(maxsize=1 << 12)
def renumbered(root: Expr) -> Expr:
    """The expression with bound variables numbered from the inside, so that no name is bound twice around a part."""
    numbers = count()
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            done[node] = once(node)
        return done[node]

    def once(node: Expr) -> Expr:
        if not isinstance(node, Reduce):
            return mapped(node, visit, _index_itself, _cond_itself)
        own = Symbol(f"~apart {next(numbers)}", "fresh", 0)
        here = {node.variable: algebra.sym(own)}
        body = visit(replaced(node.body, here))
        used = [int(each.variable.name[1:]) for each in nodes(body) if isinstance(each, Reduce)]
        name = Symbol(f"~{max(used, default=0) + 1}", "fresh", 0)
        where = substitute(substitute(node.where, here), {own: algebra.sym(name)})
        return reduce_(node.op, name, node.low, node.high, replaced(body, {own: algebra.sym(name)}), where)

    return visit(root)


def exchanged(root: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """The expression with whole parts exchanged for others, without the neutral operands that this makes."""
    done: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in done:
            same = mapped(node, visit, _index_itself, _cond_itself)
            done[node] = table.get(same, same if same is node else without_neutral(same))
        return done[node]

    found = visit(root)
    return found if found is root else renumbered(found)


@lru_cache(maxsize=1 << 15)
def all_symbols(root: Expr) -> frozenset[Symbol]:
    """Every symbol in the expression, bound ones included (their names occur nowhere else)."""
    return own_symbols(root).union(*map(all_symbols, parts(root)))


def own_symbols(node: Expr) -> frozenset[Symbol]:
    """Those of its own integers, without the expressions within it."""
    match node:
        case Whole(index=index):
            return symbols(index)
        case Element(at=at):
            return symbols(*at)
        case Choose(test=test) if not isinstance(test, Compare):
            return symbols(test)
        case Reduce(variable=variable, low=low, high=high, where=where):
            return symbols(low, high, where) | {variable}
        case _:
            return frozenset()


def heads(root: Expr) -> tuple[Element, ...]:
    """The values of tiles at heads of loops that occur in the expression."""
    return tuple(each for each in nodes(root) if isinstance(each, Element) and each.tensor.startswith(HEAD))


def reasons(root: Expr) -> tuple[str, ...]:
    """Why parts of the expression are not known."""
    return tuple(each.name[1:] for each in nodes(root) if isinstance(each, Fn) and each.name.startswith("?"))


def operation_of(value: Expr) -> str:
    """What computes a value last: an operation, a kind of reduction, or a tensor's name; empty if that has no name."""
    match value:
        case Element(tensor=tensor):
            return "" if tensor.startswith(HEAD) else tensor
        case Fn(name=name):
            return name if name.isidentifier() else ""
        case Reduce(op=op):
            return op
        case Choose(then=then, other=other):
            return operation_of(then) or operation_of(other)
        case _:
            return ""
