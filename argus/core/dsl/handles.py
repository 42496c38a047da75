"""Integers and conditions as user code sees them: thin handles on interned nodes."""

from __future__ import annotations

from typing import Union

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.index import Cond, Const, Index
from argus.core.walk import show


class Bool:
    """A condition on integers. It has no truth value while the kernel is traced, unless it is decided."""

    __slots__ = ("node",)

    def __init__(self, node: Cond) -> None:
        self.node = node

    def __and__(self, other: Bool) -> Bool:
        return Bool(algebra.all_of((self.node, other.node)))

    def __or__(self, other: Bool) -> Bool:
        return Bool(algebra.any_of((self.node, other.node)))

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
        return Int(algebra.add(self.node, unwrap(other)))

    __radd__ = __add__

    def __sub__(self, other: IntLike) -> Int:
        return Int(algebra.sub(self.node, unwrap(other)))

    def __rsub__(self, other: IntLike) -> Int:
        return Int(algebra.sub(unwrap(other), self.node))

    def __neg__(self) -> Int:
        return Int(algebra.neg(self.node))

    def __mul__(self, other: IntLike) -> Int:
        return Int(algebra.mul(self.node, unwrap(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: IntLike) -> Int:
        return Int(algebra.floordiv(self.node, _divisor(other)))

    def __rfloordiv__(self, other: IntLike) -> Int:
        return Int(algebra.floordiv(unwrap(other), _divisor(self)))

    def __mod__(self, other: IntLike) -> Int:
        return Int(algebra.mod(self.node, _divisor(other)))

    def __rmod__(self, other: IntLike) -> Int:
        return Int(algebra.mod(unwrap(other), _divisor(self)))

    def __and__(self, other: IntLike) -> Int:
        return Int(algebra.bit_and(self.node, unwrap(other)))

    def __or__(self, other: IntLike) -> Int:
        return Int(algebra.bit_or(self.node, unwrap(other)))

    def __xor__(self, other: IntLike) -> Int:
        return Int(algebra.bit_xor(self.node, unwrap(other)))

    __rxor__ = __xor__

    def __lshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_left(self.node, unwrap(other)))

    def __rshift__(self, other: IntLike) -> Int:
        return Int(algebra.shift_right(self.node, unwrap(other)))

    def __lt__(self, other: IntLike) -> Bool:
        return Bool(algebra.lt(self.node, unwrap(other)))

    def __le__(self, other: IntLike) -> Bool:
        return Bool(algebra.le(self.node, unwrap(other)))

    def __gt__(self, other: IntLike) -> Bool:
        return Bool(algebra.lt(unwrap(other), self.node))

    def __ge__(self, other: IntLike) -> Bool:
        return Bool(algebra.le(unwrap(other), self.node))

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]  # a condition, as for `<`
        return eq(self, _int_like(other))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]  # a condition, as for `<`
        return ~eq(self, _int_like(other))

    def __hash__(self) -> int:
        return hash(self.node)

    def __index__(self) -> int:
        if isinstance(self.node, Const):
            return self.node.value
        fault(
            "E101",
            f"the integer `{show(self.node)}` has no value while the kernel is traced",
            here="Python asks for a number here",
            help="loop with `loop(...)` instead of `range(...)`; extents of tiles must be Python integers",
        )

    def __repr__(self) -> str:
        return show(self.node)


def _int_like(value: object) -> IntLike:
    if isinstance(value, Int | int):
        return value
    fault("E106", f"an integer of the kernel is compared with {value!r}", help="compare it with an integer")


def unwrap(value: IntLike) -> Index:
    """The node behind a handle or a Python integer. Raises E106 for anything else."""
    if isinstance(value, Int):
        return value.node
    if isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return algebra.const(int(value))
    fault("E106", f"expected an integer, found {value!r}", here="this value is not an integer of the kernel")


def _divisor(value: IntLike) -> Index:
    node = unwrap(value)
    if node is algebra.const(0):
        fault("E106", "an integer of the kernel is divided by zero", here="the divisor is 0")
    return node


def eq(a: IntLike, b: IntLike) -> Bool:
    """The condition a == b."""
    return Bool(algebra.eq(unwrap(a), unwrap(b)))


def ceil_div(a: IntLike, b: IntLike) -> Int:
    """The quotient rounded up."""
    return Int(algebra.ceil_div(unwrap(a), _divisor(b)))


def as_cond(value: Bool | bool) -> Cond:
    """The condition behind a handle or a Python bool. Raises E106 for anything else."""
    if isinstance(value, Bool):
        return value.node
    if isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # user code is not checked
        return algebra.TRUE if value else algebra.FALSE
    fault("E106", f"expected a condition, found {value!r}", here="this is not a condition on integers")
