"""Traversal and rewriting of the expressions of nests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Node, Symbol
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols
from argus.nests.nest import (
    Apply,
    Axis,
    Both,
    Compare,
    Constant,
    Convert,
    Coordinate,
    Either,
    Expr,
    Inside,
    Negated,
    Read,
    Reduce,
    Select,
    Test,
)

Places = Mapping[Symbol, Index]


def expressions(*roots: Expr) -> list[Expr]:
    """The expressions and all below them, those in tests included, parents first; a shared one once."""
    found: dict[int, Expr] = {}
    stack = list(reversed(roots))
    while stack:
        each = stack.pop()
        if id(each) not in found:
            found[id(each)] = each
            stack += reversed(operands(each))
    return list(found.values())


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The values that an expression is computed from, those that its test compares first."""
    match expr:
        case Read() | Constant() | Coordinate():
            return ()
        case Apply(args=args):
            return args
        case Select(test=test, then=then, other=other):
            return (*compared(test), then, other)
        case Convert(arg=arg):
            return (arg,)
        case Reduce(body=body):
            return (body,)
        case _:
            assert_never(expr)


def compared(test: Test) -> tuple[Expr, ...]:
    """The values that a test compares."""
    match test:
        case Compare(left=left, right=right):
            return left, right
        case Inside():
            return ()
        case Both(tests=tests) | Either(tests=tests):
            return tuple(value for each in tests for value in compared(each))
        case Negated(test=inner):
            return compared(inner)
        case _:
            assert_never(test)


def reads(*roots: Expr) -> list[Read]:
    """Every read, in order."""
    return [each for each in expressions(*roots) if isinstance(each, Read)]


def symbols_of(read: Read) -> frozenset[Symbol]:
    """The axes and sizes that the place of a read depends on."""
    return frozenset[Symbol]().union(*map(symbols, read.index))


def reductions(*roots: Expr) -> list[Reduce]:
    """Every reduction, outer ones first."""
    return [each for each in expressions(*roots) if isinstance(each, Reduce)]


def placed(expr: Expr, places: Places) -> Expr:
    """The expression at other coordinates: axes' symbols are replaced, simultaneously, in indices and conditions."""
    return _Rebuilder(places, lambda read: read).of(expr)


def with_reads(expr: Expr, of: Callable[[Read], Expr]) -> Expr:
    """The expression with every read replaced."""
    return _Rebuilder({}, of).of(expr)


def with_axes(expr: Expr, of: Callable[[tuple[Axis, ...]], tuple[Axis, ...]]) -> Expr:
    """The expression with the axes of every reduction replaced, and nothing else."""
    return _Rebuilder({}, lambda read: read, of).of(expr)


def with_reduction(expr: Expr, old: Reduce, new: Expr) -> Expr:
    """The expression with a reduction, which is in no test and in no other reduction, replaced."""
    match expr:
        case Reduce():
            return new if expr == old else expr
        case Apply(op=op, args=args):
            return Apply(op, tuple(with_reduction(each, old, new) for each in args))
        case Convert(dtype=dtype, arg=arg):
            return Convert(dtype, with_reduction(arg, old, new))
        case Select(test=test, then=then, other=other):
            return Select(test, with_reduction(then, old, new), with_reduction(other, old, new))
        case _:
            return expr


def indices(*roots: Expr) -> list[Node]:
    """The coordinates that are values, the conditions on coordinates, and the extents of reductions' axes."""
    found: list[Node] = []
    for each in expressions(*roots):
        match each:
            case Coordinate(index=index):
                found.append(index)
            case Select(test=test):
                found += _conditions(test)
            case Reduce(axes=axes):
                found += [axis.extent for axis in axes]
            case _:
                pass
    return found


def _conditions(test: Test) -> list[Cond]:
    match test:
        case Compare():
            return []
        case Inside(condition=condition):
            return [condition]
        case Both(tests=tests) | Either(tests=tests):
            return [cond for each in tests for cond in _conditions(each)]
        case Negated(test=negated):
            return _conditions(negated)
        case _:
            assert_never(test)


@frozen
class _Rebuilder:
    """Rebuilds expressions; those that several others share are rebuilt once, and shared again.

    known: the result by the identity of what was rebuilt, which it keeps alive.
    """

    places: Places
    read: Callable[[Read], Expr]
    axes: Callable[[tuple[Axis, ...]], tuple[Axis, ...]] | None = None
    known: dict[int, tuple[Expr, Expr]] = field(factory=dict[int, tuple[Expr, Expr]])

    def of(self, expr: Expr) -> Expr:
        found = self.known.get(id(expr))
        if found is None:
            found = self.known[id(expr)] = expr, self._made(expr)
        return found[1]

    def _made(self, expr: Expr) -> Expr:
        match expr:
            case Read(tensor=tensor, index=index, dtype=dtype, outside=outside):
                return self.read(Read(tensor, tuple(map(self.index, index)), dtype, outside))
            case Constant():
                return expr
            case Coordinate(index=index):
                return Coordinate(self.index(index))
            case Apply(op=op, args=args):
                return Apply(op, tuple(map(self.of, args)))
            case Select(test=test, then=then, other=other):
                made = self.test(test)
                if isinstance(made, Inside) and made.condition in (algebra.TRUE, algebra.FALSE):
                    return self.of(then if made.condition is algebra.TRUE else other)
                return Select(made, self.of(then), self.of(other))
            case Convert(dtype=dtype, arg=arg):
                return Convert(dtype, self.of(arg))
            case Reduce(op=op, axes=axes, body=body) if self.axes is not None:
                return Reduce(op, self.axes(axes), self.of(body))
            case Reduce(op=op, axes=axes, body=body):
                # Its own axes keep their names, and get another symbol with another extent.
                moved = tuple(Axis(axis.name, self.index(axis.extent)) for axis in axes)
                own = {old.symbol: new.index for old, new in zip(axes, moved, strict=True)}
                return Reduce(op, moved, _Rebuilder({**self.places, **own}, self.read).of(body))
            case _:
                assert_never(expr)

    def index(self, index: Index) -> Index:
        return substitute_index(index, self.places)

    def test(self, test: Test) -> Test:
        match test:
            case Compare(op=op, left=left, right=right):
                return Compare(op, self.of(left), self.of(right))
            case Inside(condition=condition):
                return Inside(substitute_index(condition, self.places))
            case Both(tests=tests):
                return Both(tuple(map(self.test, tests)))
            case Either(tests=tests):
                return Either(tuple(map(self.test, tests)))
            case Negated(test=negated):
                return Negated(self.test(negated))
            case _:
                assert_never(test)
