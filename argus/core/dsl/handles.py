"""Symbolic integers and conditions of the language: thin handles on interned expression nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar, Union

from argus.core import algebra
from argus.core.dsl.faults import describe_value, fault
from argus.core.index import Cond, Const, Coord, Index
from argus.core.index_text import show
from argus.core.walk import mentions


class ElementWise:
    """Base of values whose operators broadcast an integer or condition of the kernel over their elements."""

    __slots__ = ()


class Bool:
    """A condition on integers. While tracing, it has a truth value only if it folds to a constant."""

    __slots__ = ("node",)

    def __init__(self, node: Cond) -> None:
        self.node = node

    def __and__(self, other: Bool | bool) -> Bool:
        if isinstance(other, ElementWise):
            return NotImplemented
        return Bool(algebra.all_of((self.node, as_cond(other))))

    __rand__ = __and__

    def __or__(self, other: Bool | bool) -> Bool:
        if isinstance(other, ElementWise):
            return NotImplemented
        return Bool(algebra.any_of((self.node, as_cond(other))))

    __ror__ = __or__

    def __invert__(self) -> Bool:
        return Bool(algebra.negate(self.node))

    def __bool__(self) -> bool:
        if self.node is algebra.TRUE:
            return True
        if self.node is algebra.FALSE:
            return False
        fault(
            "E101",
            f"the condition `{show(self.node)}` has no value while the kernel is traced",
            here="Python asks for true or false here",
            help="use `with when(...):` for statements, `where(...)` for elements, `&` and `|` to combine",
        )

    def __repr__(self) -> str:
        return show(self.node)


IntLike = Union["Int", int]


class Int:
    """An integer of the kernel: a size, a coordinate, a loop variable, or arithmetic on them."""

    __slots__ = ("node",)

    def __init__(self, node: Index) -> None:
        self.node = node

    def __add__(self, other: IntLike) -> Int:
        if isinstance(other, ElementWise):
            return NotImplemented
        return Int(algebra.add(self.node, unwrap(other)))

    __radd__ = __add__

    def __sub__(self, other: IntLike) -> Int:
        if isinstance(other, ElementWise):
            return NotImplemented
        return Int(algebra.sub(self.node, unwrap(other)))

    def __rsub__(self, other: IntLike) -> Int:
        return Int(algebra.sub(unwrap(other), self.node))

    def __neg__(self) -> Int:
        return Int(algebra.neg(self.node))

    def __pos__(self) -> Int:
        return self

    def __mul__(self, other: IntLike) -> Int:
        if isinstance(other, ElementWise):
            return NotImplemented
        return Int(algebra.mul(self.node, unwrap(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: IntLike) -> Int:
        return Int(algebra.floordiv(self.node, _divisor(other)))

    def __rfloordiv__(self, other: IntLike) -> Int:
        return Int(algebra.floordiv(unwrap(other), _divisor(self)))

    def __truediv__(self, other: IntLike) -> Int:
        if isinstance(other, ElementWise):
            return NotImplemented
        _true_division_fault(self, other)

    def __rtruediv__(self, other: IntLike) -> Int:
        _true_division_fault(other, self)

    def __mod__(self, other: IntLike) -> Int:
        return Int(algebra.mod(self.node, _divisor(other)))

    def __rmod__(self, other: IntLike) -> Int:
        return Int(algebra.mod(unwrap(other), _divisor(self)))

    def __and__(self, other: IntLike) -> Int:
        return Int(algebra.bit_and(self.node, unwrap(other)))

    __rand__ = __and__

    def __or__(self, other: IntLike) -> Int:
        return Int(algebra.bit_or(self.node, unwrap(other)))

    __ror__ = __or__

    def __xor__(self, other: IntLike) -> Int:
        return Int(algebra.bit_xor(self.node, unwrap(other)))

    __rxor__ = __xor__

    def __lshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_left(self.node, _shift_amount(other)))

    def __rlshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_left(unwrap(other), _shift_amount(self)))

    def __rshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_right(self.node, _shift_amount(other)))

    def __rrshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_right(unwrap(other), _shift_amount(self)))

    def __lt__(self, other: IntLike) -> Bool:
        return Bool(algebra.lt(self.node, unwrap(other)))

    def __le__(self, other: IntLike) -> Bool:
        return Bool(algebra.le(self.node, unwrap(other)))

    def __gt__(self, other: IntLike) -> Bool:
        return Bool(algebra.lt(unwrap(other), self.node))

    def __ge__(self, other: IntLike) -> Bool:
        return Bool(algebra.le(unwrap(other), self.node))

    def __eq__(self, other: object) -> Bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`: a condition
        return eq(self, _comparable(other))

    def __ne__(self, other: object) -> Bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # as `<`: a condition
        return ~eq(self, _comparable(other))

    def __hash__(self) -> int:
        return hash(self.node)

    def __bool__(self) -> bool:
        return self._number("Python asks for true or false here") != 0

    def __index__(self) -> int:
        return self._number("Python asks for a number here")

    def _number(self, here: str) -> int:
        if isinstance(self.node, Const):
            return self.node.value
        fault(
            "E101",
            f"the integer `{show(self.node)}` has no value while the kernel is traced",
            here=here,
            help="loop with `loop(...)`, branch with `when(...)`; extents of tiles must be Python integers",
        )

    def __repr__(self) -> str:
        return show(self.node)


R = TypeVar("R")
CoordinateFunction = (
    Callable[[Int], R]
    | Callable[[Int, Int], R]
    | Callable[[Int, Int, Int], R]
    | Callable[[Int, Int, Int, Int], R]
    | Callable[[Int, Int, Int, Int, Int], R]
)
"""A function of one coordinate per axis; a union over arities, so that type checkers infer lambda parameters."""


def _true_division_fault(a: IntLike, b: IntLike) -> NoReturn:
    fault("E106", f"integers of the kernel have no fractions: `{a!r} / {b!r}`", help="divide with `//` or `ceil_div`")


def _comparable(value: object) -> IntLike:
    if isinstance(value, Int | int):
        return value
    fault(
        "E106", f"an integer of the kernel is compared with {describe_value(value)}", help="compare it with an integer"
    )


def unwrap(value: IntLike) -> Index:
    """The expression node of a handle or Python integer. Raises E106 for anything else."""
    if isinstance(value, Int):
        return value.node
    if isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return algebra.const(int(value))
    fault(
        "E106", f"expected an integer, found {describe_value(value)}", here="this value is not an integer of the kernel"
    )


def uniform_index(value: IntLike) -> Index:
    """The node of an integer that is the same for all elements of a view. Raises E106 if it uses their coordinates."""
    node = unwrap(value)
    if mentions(node, (Coord,)):
        fault(
            "E106",
            f"`{show(node)}` is the coordinate of an element; the index of a view is the same for all its elements",
            help="compute an index for each element with `.gather(shape, function)`",
        )
    return node


def number(value: IntLike, what: str) -> int:
    """A Python integer. Raises E101 for a symbolic integer, E106 for anything else. what: names it in the message."""
    if isinstance(value, Int):
        return value.__index__()
    if isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return int(value)
    fault("E106", f"{what} is an integer, found {describe_value(value)}", here="this value is not an integer")


def extent(value: IntLike, what: str) -> int:
    """A positive Python integer. Raises E101 for a symbolic integer, E106 for anything else."""
    found = number(value, what)
    if found <= 0:
        fault("E106", f"{what} is {found}", here="an extent is at least 1", help="give a positive integer")
    return found


def extents(shape: tuple[IntLike, ...], what: str) -> tuple[int, ...]:
    """A static shape of positive extents. Raises E101 for a symbolic extent, E106 for anything else."""
    return tuple(extent(value, f"an extent of {what}") for value in axis_values(shape, what))


def axis_values(values: tuple[IntLike, ...], what: str) -> tuple[IntLike, ...]:
    """The values as a tuple, one per axis. Raises E106 for a single value."""
    if isinstance(values, tuple | list):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return tuple(values)
    fault(
        "E106",
        f"{what} takes one integer an axis, found {describe_value(values)}",
        help="write a tuple: `(rows, columns)`",
    )


def _divisor(value: IntLike) -> Index:
    node = unwrap(value)
    if node is algebra.const(0):
        fault("E106", "an integer of the kernel is divided by zero", here="the divisor is 0")
    return node


def _shift_amount(value: IntLike) -> Index:
    node = unwrap(value)
    if node.range[1] is not None and node.range[1] < 0:
        fault("E106", f"an integer of the kernel is shifted by {show(node)} bits", here="the distance is negative")
    return node


def eq(a: IntLike, b: IntLike) -> Bool:
    """The condition a == b."""
    return Bool(algebra.eq(unwrap(a), unwrap(b)))


def ceil_div(a: IntLike, b: IntLike) -> Int:
    """The quotient rounded up."""
    return Int(algebra.ceil_div(unwrap(a), _divisor(b)))


def as_cond(value: Bool | bool) -> Cond:
    """The condition node of a handle or Python bool. Raises E106 for anything else."""
    if isinstance(value, Bool):
        return value.node
    if isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return algebra.TRUE if value else algebra.FALSE
    fault("E106", f"expected a condition, found {describe_value(value)}", here="this is not a condition on integers")
