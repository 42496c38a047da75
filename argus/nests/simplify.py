"""Constructors of expressions that fold constants, coordinates and conditions, so that equal values have one form."""

from __future__ import annotations

from typing import assert_never

from argus.core import algebra
from argus.core.elementwise import ELEMENT_OPS, evaluate_op
from argus.core.index import Cmp, Const, Index, Sym
from argus.core.walk import substitute
from argus.nests.nest import (
    Apply,
    Axis,
    Both,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Coordinate,
    Either,
    Expr,
    Inside,
    Negated,
    Reduce,
    Select,
    Test,
)
from argus.nests.rewrite import placed

TRUE, FALSE = Inside(algebra.TRUE), Inside(algebra.FALSE)
ONE, ZERO = Constant(1.0), Constant(0.0)


def apply(op: str, *args: Expr) -> Expr:
    """An element operation, folded where its operands are known, or leave an operand unchanged."""
    places = [_integer(each) for each in args]
    if op in _OF_INTEGERS and any(isinstance(each, Coordinate) for each in args):
        numbers = [each for each in places if each is not None]
        if len(numbers) == len(args):
            return coordinate(_OF_INTEGERS[op](*numbers))
    if op == "div" and isinstance(args[0], Coordinate) and isinstance(places[1], Const) and places[1].value > 0:
        above, below = args[0].index, places[1]
        if algebra.mod(above, below) is algebra.const(0):
            return coordinate(algebra.floordiv(above, below))
    if op in ELEMENT_OPS and all(isinstance(each, Constant) for each in args):
        return Constant(evaluate_op(op, *(each.value for each in args if isinstance(each, Constant))))
    match op, args:
        case ("add", (Constant(value=0.0), other)) | ("add" | "sub", (other, Constant(value=0.0))):
            return other
        case ("mul", (Constant(value=1.0), other)) | ("mul" | "div" | "pow", (other, Constant(value=1.0))):
            return other
        case ("neg", (Apply(op="neg", args=(inner,)),)):
            return inner
        case ("mul", (Apply(op="div") as one, other)) if _is_fraction(one):
            return _scaled(other, one)
        case ("mul", (other, Apply(op="div") as one)) if _is_fraction(one):
            return _scaled(other, one)
        case _:
            return Apply(op, args)


_OF_INTEGERS = {
    "add": algebra.add,
    "sub": algebra.sub,
    "mul": algebra.mul,
    "neg": algebra.neg,
    "max": algebra.maximum,
    "min": algebra.minimum,
}


def _is_fraction(of: Apply) -> bool:
    return all(_integer(each) is not None for each in of.args)


def _scaled(value: Expr, fraction: Apply) -> Expr:
    """The value times a quotient of integers, which kernels do not compute by itself."""
    above, below = fraction.args
    return Apply("div", (apply("mul", value, above), below))


def coordinate(index: Index) -> Expr:
    """An integer of coordinates and sizes as a number."""
    return Constant(float(index.value)) if isinstance(index, Const) else Coordinate(index)


def _integer(expr: Expr) -> Index | None:
    """The index expression that a value is, if it is one."""
    match expr:
        case Coordinate(index=index):
            return index
        case Constant(value=value) if abs(value) < 1 << 53 and value == int(value):
            return algebra.const(int(value))
        case _:
            return None


def compare(op: CompareOp, left: Expr, right: Expr) -> Test:
    """A comparison; of coordinates, a condition."""
    a, b = _integer(left), _integer(right)
    if a is not None and b is not None:
        made = algebra.lt(a, b) if op == "<" else algebra.le(a, b) if op == "<=" else algebra.eq(a, b)
        return Inside(made)
    if isinstance(left, Constant) and isinstance(right, Constant):
        x, y = left.value, right.value
        return TRUE if (x < y if op == "<" else x <= y if op == "<=" else x == y) else FALSE
    return Compare(op, left, right)


def both(*tests: Test) -> Test:
    """All tests hold."""
    return _joined(tests, TRUE, FALSE)


def either(*tests: Test) -> Test:
    """A test holds."""
    return _joined(tests, FALSE, TRUE)


def _joined(tests: tuple[Test, ...], neutral: Inside, absorbing: Inside) -> Test:
    kept = [each for each in tests if each != neutral]
    if absorbing in kept:
        return absorbing
    if not kept:
        return neutral
    if len(kept) == 1:
        return kept[0]
    conditions = [each.condition for each in kept if isinstance(each, Inside)]
    if len(conditions) == len(kept):
        return Inside(algebra.all_of(conditions) if neutral is TRUE else algebra.any_of(conditions))
    return Both(tuple(kept)) if neutral is TRUE else Either(tuple(kept))


def negated(test: Test) -> Test:
    match test:
        case Inside(condition=condition):
            return Inside(algebra.negate(condition))
        case Negated(test=inner):
            return inner
        case Compare() | Both() | Either():
            return Negated(test)
        case _:
            assert_never(test)


def select(test: Test, then: Expr, other: Expr) -> Expr:
    """`then` where the test holds, else `other`. What is NaN where another value is, is that value there."""
    match test, then:
        case Negated(test=Compare(op="==", left=left, right=right)), Constant(value=value) if value != value:  # noqa: PLR0124 reason: NaN is not itself
            if left == right:
                return Select(test, left, other)
        case _:
            pass
    if test == TRUE or then == other:
        return then
    return other if test == FALSE else Select(test, then, other)


def truth(test: Test) -> Expr:
    """A test as a number: 1 where it holds, else 0."""
    return select(test, ONE, ZERO)


def as_test(value: Expr) -> Test:
    """Whether a number is other than 0."""
    match value:
        case Constant(value=number):
            return FALSE if number == 0 else TRUE
        case Select(test=test, then=Constant(value=1.0), other=Constant(value=0.0)):
            return test
        case _:
            return negated(compare("==", value, ZERO))


def summed(axes: tuple[Axis, ...], body: Expr) -> Expr:
    """The sum over axes: without those along which only one place has a term other than 0."""
    for axis in axes:
        place = _only_place(body, axis)
        if place is not None:
            rest = tuple(each for each in axes if each is not axis)
            moved = placed(body, {axis.symbol: place})
            return summed(rest, moved) if rest else moved
    return Reduce("add", axes, body)


def _only_place(body: Expr, axis: Axis) -> Index | None:
    """The coordinate along an axis outside of which a product is 0, by one of its factors."""
    match body:
        case Apply(op="mul", args=args):
            found = [_only_place(each, axis) for each in args]
            return next((each for each in found if each is not None), None)
        case Convert(arg=arg):
            return _only_place(arg, axis)
        case Select(test=Inside(condition=Cmp(op="==", left=left, right=right)), other=Constant(value=0.0)):
            apart = algebra.sub(left, right)
            step = algebra.sub(substitute(apart, {axis.symbol: algebra.add(axis.index, 1)}), apart)
            rest = substitute(apart, {axis.symbol: algebra.const(0)})
            if not isinstance(step, Const) or abs(step.value) != 1:
                return None
            place = algebra.mul(rest, -step.value)
            return place if _is_coordinate(place, axis) else None
        case _:
            return None


def _is_coordinate(place: Index, axis: Axis) -> bool:
    """Whether the place is an axis of the same extent, and so within this one's."""
    return isinstance(place, Sym) and place.symbol.kind == "fresh" and None is not place.symbol.high == axis.symbol.high
