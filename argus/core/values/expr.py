"""Expressions over the reals: what a cell holds, or what a claim says that it holds. Interned, so `is` compares them.

    Expr = Number(q) | Infinity(sign) | Whole(index) | Element(tensor, at) | Fn(name, args)
         | Reduce(op, variable, low, high, where, body) | Choose(test, then, other)
    Test = Cond | Compare(op, left, right)

This is syntax only: `normal` gives it a normal form, `evaluate` its value. A set with repetitions is a sum of `Reduce`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, cast

from attrs import fields, frozen

from argus.core import algebra
from argus.core.elementwise import REAL_NAMES
from argus.core.index import Cond, Index, Symbol
from argus.core.interning import unique

ReduceOp = Literal["sum", "max", "min", "product"]
CompareOp = Literal["<", "<=", "=="]


class _Interned:
    """Copying and unpickling return the one object with these fields."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        kind = cast("type[Number]", type(self))
        return unique, (kind, *(getattr(self, each.name) for each in fields(kind)))


class _Operators(_Interned):
    """Arithmetic on expressions, as the language writes it."""

    __slots__ = ()

    def __add__(self, other: ExprLike) -> Fn:
        return fn("add", self, other)

    def __radd__(self, other: ExprLike) -> Fn:
        return fn("add", other, self)

    def __sub__(self, other: ExprLike) -> Fn:
        return fn("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Fn:
        return fn("sub", other, self)

    def __mul__(self, other: ExprLike) -> Fn:
        return fn("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Fn:
        return fn("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Fn:
        return fn("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Fn:
        return fn("div", other, self)

    def __neg__(self) -> Fn:
        return fn("neg", self)

    def __lt__(self, other: ExprLike) -> Compare:
        return compare("<", self, other)

    def __le__(self, other: ExprLike) -> Compare:
        return compare("<=", self, other)

    def __gt__(self, other: ExprLike) -> Compare:
        return compare("<", other, self)

    def __ge__(self, other: ExprLike) -> Compare:
        return compare("<=", other, self)


@frozen(eq=False, weakref_slot=True)
class Number(_Operators):
    """A rational number."""

    value: Fraction

    @property
    def numerator(self) -> int:
        return self.value.numerator

    @property
    def denominator(self) -> int:
        return self.value.denominator


@frozen(eq=False, weakref_slot=True)
class Infinity(_Operators):
    """`-inf` (sign -1) or `+inf` (sign 1)."""

    sign: int


@frozen(eq=False, weakref_slot=True)
class Whole(_Operators):
    """An integer expression as a number: a size, a bound variable."""

    index: Index


@frozen(eq=False, weakref_slot=True)
class Element(_Operators):
    """The element of a tensor at these coordinates: any real number."""

    tensor: str
    at: tuple[Index, ...]


@frozen(eq=False, weakref_slot=True)
class Fn(_Operators):
    """An element operation (`operations`), or an unknown function of this name."""

    name: str
    args: tuple[Expr, ...]


@frozen(eq=False, weakref_slot=True)
class Reduce(_Operators):
    """`op` of the body over each `variable` in [low, high) that satisfies `where`, once."""

    op: ReduceOp
    variable: Symbol
    low: Index
    high: Index
    where: Cond
    body: Expr


@frozen(eq=False, weakref_slot=True)
class Choose(_Operators):
    """`then` where the test holds, else `other`; the branch not taken has no influence, whatever it is."""

    test: Test
    then: Expr
    other: Expr


@frozen(eq=False, weakref_slot=True)
class Compare(_Interned):
    """`left op right` on values."""

    op: CompareOp
    left: Expr
    right: Expr


Expr = Number | Infinity | Whole | Element | Fn | Reduce | Choose
Test = Cond | Compare
ExprLike = Any
"""An expression, an index expression, an int or a Fraction: `expr` converts, and refuses anything else."""


def expr(value: ExprLike) -> Expr:
    """The expression itself, or the number. Raises TypeError for what is neither (a float too: it is not exact)."""
    if isinstance(value, _Operators):  # the base of each kind: a union of them is asked one by one
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return unique(Number, Fraction(value))
    if isinstance(value, Index):
        return unique(Whole, value)
    raise TypeError(f"not a value: {value!r}")


def infinity(sign: int) -> Infinity:
    """`+inf` or `-inf`."""
    return unique(Infinity, sign)


def element(tensor: str, *at: algebra.IndexLike) -> Element:
    """The element of `tensor` at these coordinates."""
    return unique(Element, tensor, tuple(map(algebra.index, at)))


def fn(name: str, *args: ExprLike) -> Fn:
    """An operation on values.

    `fma` is a product and a sum, from which it differs by rounding alone; `clamp` a maximum and a minimum. `expm1` and
    `log1p` differ from what defines them by rounding alone, `max_nan` from `max` by NaN, which is no real number.
    """
    if name == "fma":
        one, two, three = args
        return fn("add", fn("mul", one, two), three)
    if name == "clamp":
        one, low, high = args
        return fn("min", fn("max", one, low), high)
    if name == "expm1":
        return fn("sub", fn("exp", *args), 1)
    if name == "log1p":
        return fn("log", fn("add", 1, *args))
    name = REAL_NAMES.get(name, name)
    return unique(Fn, name, tuple(map(expr, args)))


def reduce_(
    op: ReduceOp,
    variable: Symbol,
    low: algebra.IndexLike,
    high: algebra.IndexLike,
    body: ExprLike,
    where: Cond = algebra.TRUE,
) -> Reduce:
    """`op` of the body over the variable in [low, high) where the condition holds."""
    return unique(Reduce, op, variable, algebra.index(low), algebra.index(high), where, expr(body))


def choose(test: Test, then: ExprLike, other: ExprLike) -> Choose:
    """`then` where the test holds, else `other`."""
    return unique(Choose, test, expr(then), expr(other))


def compare(op: CompareOp, left: ExprLike, right: ExprLike) -> Compare:
    """A comparison of values."""
    return unique(Compare, op, expr(left), expr(right))
