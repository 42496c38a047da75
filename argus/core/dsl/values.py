"""Values in formulas of claims: real numbers computed from elements of tensors, sizes and coordinates."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from math import isinf, isnan
from typing import Union, cast

from attrs import field, frozen

from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import Bool, ElementWise, Int
from argus.core.index import Index, Symbol
from argus.core.values import expr as syntax
from argus.core.values.expr import Expr

Operand = Union["Value", Int, Fraction, float]


@frozen
class Scope:
    """The formula under construction. unique: a name that no symbol of the kernel has yet.

    open: the variables of the reductions around the current value. known: all variables so far, by wanted name.
    before: the tensors that it names by `before`.
    """

    unique: Callable[[str], str]
    known: dict[str, Symbol]
    open: list[Symbol] = field(factory=list[Symbol])
    before: set[str] = field(factory=set[str])

    def variable(self, wanted: str) -> Symbol:
        """A variable that is not open; equal ones for reductions side by side, so that equal sums are one object."""
        while self.known.get(wanted) in self.open and wanted in self.known:
            wanted += "_"
        if wanted not in self.known:
            self.known[wanted] = Symbol(self.unique(wanted.rstrip("_")), "fresh")
        return self.known[wanted]


_scope: ContextVar[Scope | None] = ContextVar("argus_formula", default=None)


def formula_scope(what: str) -> Scope:
    """The formula under construction. Raises E106 outside one. what: the caller, for the message."""
    scope = _scope.get()
    if scope is None:
        fault("E106", f"`{what}` was called outside a formula", help="call it in the function of `assert_equals`")
    return scope


def in_formula() -> bool:
    """Whether the function of an `assert_equals` is being called."""
    return _scope.get() is not None


@contextmanager
def making_formula(scope: Scope) -> Generator[None]:
    """Elements of tensors are values, for the body of the `with` statement."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)


class Value(ElementWise):
    """A real number in a formula: an element of a tensor, or computed from such."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __add__(self, other: Operand) -> Value:
        return applied("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return applied("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return applied("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return applied("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return applied("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return applied("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return applied("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return applied("div", other, self)

    def __pow__(self, other: Operand) -> Value:
        return applied("pow", self, other)

    def __neg__(self) -> Value:
        return applied("neg", self)

    def __abs__(self) -> Value:
        return applied("abs", self)

    def __lt__(self, other: Operand) -> ValueTest:
        return _compared("<", self, other)

    def __le__(self, other: Operand) -> ValueTest:
        return _compared("<=", self, other)

    def __gt__(self, other: Operand) -> ValueTest:
        return _compared("<", other, self)

    def __ge__(self, other: Operand) -> ValueTest:
        return _compared("<=", other, self)

    def __eq__(self, other: object) -> ValueTest:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`
        return _compared("==", self, cast(Operand, other))

    def __ne__(self, other: object) -> ValueTest:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`
        return ~_compared("==", self, cast(Operand, other))

    def __hash__(self) -> int:
        return hash(self.expr)

    def __repr__(self) -> str:
        return "a value of a formula"


class ValueTest(ElementWise):
    """A comparison of values, or a combination of such and of conditions.

    select: `then` where it holds, else `other`.
    """

    __slots__ = ("select",)

    def __init__(self, select: Callable[[Expr, Expr], Expr]) -> None:
        self.select = select

    def __and__(self, other: ValueTest | Bool | bool) -> ValueTest:
        more = as_test(other)
        return ValueTest(lambda then, otherwise: self.select(more.select(then, otherwise), otherwise))

    __rand__ = __and__

    def __or__(self, other: ValueTest | Bool | bool) -> ValueTest:
        more = as_test(other)
        return ValueTest(lambda then, otherwise: self.select(then, more.select(then, otherwise)))

    __ror__ = __or__

    def __invert__(self) -> ValueTest:
        return ValueTest(lambda then, otherwise: self.select(otherwise, then))

    def __bool__(self) -> bool:
        fault(
            "E101",
            "a comparison of values of a formula has no truth value",
            here="Python asks for true or false here",
            help="use `where(...)`, and `&`, `|` and `~` to combine",
        )


def as_test(value: ValueTest | Bool | bool) -> ValueTest:
    """The test of a condition. Raises E106 for anything else."""
    if isinstance(value, ValueTest):
        return value
    if isinstance(value, bool):
        return ValueTest(lambda then, other: then if value else other)
    if isinstance(value, Bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return ValueTest(lambda then, other: syntax.choose(value.node, then, other))
    fault("E106", f"expected a condition, found {describe_value(value)}", here="this is no condition")


def _compared(op: syntax.CompareOp, left: Operand, right: Operand) -> ValueTest:
    test = syntax.compare(op, lift(left), lift(right))
    return ValueTest(lambda then, other: syntax.choose(test, then, other))


def lift(value: object) -> Expr:
    """A value, an integer of the kernel or a number as an expression.

    Raises E111 for what is in registers or shared memory, E113 for a tensor that is not indexed fully, E114 otherwise.
    """
    if isinstance(value, Value):
        return value.expr
    if isinstance(value, Int):
        return syntax.expr(value.node)
    if isinstance(value, float):
        if isnan(value):
            fault("E114", "NaN is no number of a formula")
        return syntax.infinity(1 if value > 0 else -1) if isinf(value) else syntax.expr(Fraction(value))
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return syntax.expr(value)
    if isinstance(value, ElementWise):
        fault("E111", f"a formula is computed from {describe_value(value)}", help=ELEMENTS_ONLY)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        count = len(cast(tuple[object, ...], shape))
        message = f"{value!r} in a formula is {count} axes short of an element"
        fault("E113", message, help="index every axis of the tensor: `X[r, n]`")
    fault(
        "E114",
        f"expected a value of the formula, found {describe_value(value)}",
        help="compute it from elements of tensors, sizes, coordinates and numbers",
    )


ELEMENTS_ONLY = "write it with elements of the kernel's tensors: `X[r, n]`"


def applied(name: str, *operands: object) -> Value:
    """An operation on values."""
    return Value(syntax.fn(name, *map(lift, operands)))


def chosen(test: ValueTest | Bool | bool, then: object, other: object) -> Value:
    """`then` where the test holds, else `other`."""
    return Value(as_test(test).select(lift(then), lift(other)))


def element_value(tensor: str, at: tuple[Index, ...]) -> Value:
    """An element of a tensor."""
    return Value(syntax.element(tensor, *at))
