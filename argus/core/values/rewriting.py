"""Traversals of expressions: substitution of integers, and the elements, symbols and index expressions that occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Protocol

from argus.core.algebra import coord
from argus.core.index import Bin, Cond, Index, Node, Symbol
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Test,
    Whole,
    choose,
    compare,
    element,
    expr,
    fn,
    reduce_,
)
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols, within

IndexMap = Callable[[Index], Index]
CondMap = Callable[[Cond], Cond]


class Choosing(Protocol):
    """Builds a choice of two expressions."""

    def __call__(self, test: Test, then: Expr, other: Expr, /) -> Expr: ...


def map_parts(
    root: Expr, on_expr: Callable[[Expr], Expr], on_index: IndexMap, on_cond: CondMap, choosing: Choosing = choose
) -> Expr:
    """The expression with its direct parts replaced; bound variables are left to the maps.

    Where no part changes it is the root itself, which no constructor would find faster.
    """
    match root:
        case Fn(name=name, args=args):
            made = [on_expr(each) for each in args]
            return root if all(map(is_, made, args)) else fn(name, *made)
        case Number() | Infinity():
            return root
        case Whole(index=index):
            at = on_index(index)
            return root if at is index else expr(at)
        case Element(tensor=tensor, at=at):
            places = [on_index(each) for each in at]
            return root if all(map(is_, places, at)) else element(tensor, *places)
        case Choose(test=Compare(op=op, left=left, right=right), then=then, other=other):
            return choosing(compare(op, on_expr(left), on_expr(right)), on_expr(then), on_expr(other))
        case Choose(test=test, then=then, other=other):
            assert not isinstance(test, Compare)
            return choosing(on_cond(test), on_expr(then), on_expr(other))
        case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
            return reduce_(op, variable, on_index(low), on_index(high), on_expr(body), on_cond(where))


def mapped(root: Expr, on_index: IndexMap, on_cond: CondMap) -> Expr:
    """The expression with each index expression and condition replaced; bound variables are left to the maps."""
    known: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in known:
            known[node] = map_parts(node, visit, on_index, on_cond)
        return known[node]

    return visit(root)


def substitute(root: Expr, names: Mapping[Symbol, Index], coords: tuple[Index, ...] | None = None) -> Expr:
    """The expression with symbols (and coordinates, if given) replaced. No name may be a bound variable."""
    return mapped(
        root,
        lambda index: substitute_index(index, names, coords),
        lambda cond: substitute_index(cond, names, coords),
    )


@lru_cache(maxsize=1 << 13)
def nodes(root: Expr) -> tuple[Expr, ...]:
    """Every expression within the root, once each, the root first."""
    seen: dict[Expr, None] = {}
    stack = [root]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen[top] = None
            stack += parts(top)
    return tuple(seen)


def parts(of: Expr) -> tuple[Expr, ...]:
    """The expressions directly within one."""
    match of:
        case Fn(args=args):
            return args
        case Choose(test=test, then=then, other=other):
            return (then, other, *((test.left, test.right) if isinstance(test, Compare) else ()))
        case Reduce(body=body):
            return (body,)
        case Number() | Infinity() | Whole() | Element():
            return ()


def written_size(root: Expr) -> int:
    """The number of parts of the expression as text, where a shared part is written as often as it occurs."""
    known: dict[Expr, int] = {}

    def visit(node: Expr) -> Expr:
        if node not in known:
            known[node] = 1
            below: list[Expr] = []

            def part(each: Expr) -> Expr:
                below.append(visit(each))
                return each

            map_parts(node, part, lambda index: index, lambda cond: cond)
            known[node] += sum(known[each] for each in below)
        return node

    return known[visit(root)]


def elements(root: Expr) -> tuple[Element, ...]:
    """The elements of tensors that the expression reads."""
    return tuple(each for each in nodes(root) if isinstance(each, Element))


@lru_cache(maxsize=1 << 13)
def bound_variables(root: Expr) -> frozenset[Symbol]:
    """The variables of all reductions."""
    return frozenset(each.variable for each in nodes(root) if isinstance(each, Reduce))


@lru_cache(maxsize=1 << 13)
def integers(root: Expr) -> tuple[Node, ...]:
    """The index expressions and conditions that occur, with a coordinate in place of each bound variable."""
    bound = {symbol: coord(0) for symbol in bound_variables(root)}
    found = [own_integers(node) for node in nodes(root)]
    indices = (substitute_index(each, bound) for own, _ in found for each in own)
    return *indices, *(substitute_index(each, bound) for _, own in found for each in own)


@lru_cache(maxsize=1 << 13)
def divisors(root: Expr) -> frozenset[Index]:
    """What a remainder in an integer or a condition is by."""
    own = (each for node in nodes(root) for some in own_integers(node) for each in some)
    within_own = (each for part in own for each in within(part))
    return frozenset(each.right for each in within_own if isinstance(each, Bin) and each.op == "%")


def own_integers(node: Expr) -> tuple[tuple[Index, ...], tuple[Cond, ...]]:
    """The index expressions and the conditions of an expression, without those of the expressions within it."""
    match node:
        case Whole(index=index):
            return (index,), ()
        case Element(at=at):
            return at, ()
        case Choose(test=test) if not isinstance(test, Compare):
            return (), (test,)
        case Reduce(low=low, high=high, where=where):
            return (low, high), (where,)
        case Number() | Infinity() | Fn() | Choose():
            return (), ()


@lru_cache(maxsize=1 << 14)
def free_symbols(root: Expr | Test) -> frozenset[Symbol]:
    """The symbols that occur and are not bound where they do."""
    match root:
        case Whole(index=index):
            return symbols(index)
        case Element(at=at):
            return symbols(*at)
        case Fn(args=args):
            return frozenset[Symbol]().union(*map(free_symbols, args))
        case Choose(test=test, then=then, other=other):
            return free_symbols(test) | free_symbols(then) | free_symbols(other)
        case Compare(left=left, right=right):
            return free_symbols(left) | free_symbols(right)
        case Reduce(variable=variable, low=low, high=high, where=where, body=body):
            return symbols(low, high) | ((free_symbols(body) | symbols(where)) - {variable})
        case Number() | Infinity():
            return frozenset()
        case _:
            return symbols(root)
