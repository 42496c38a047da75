"""Elementwise functions of register tiles, and of values in formulas."""

from __future__ import annotations

from typing import TypeVar, cast, overload

from argus.core import algebra
from argus.core.dsl.handles import Bool, Int, unwrap
from argus.core.dsl.tiles.fragments import Fragment, Operand, elementwise, select
from argus.core.dsl.tiles.masks import ElementCondition, Mask
from argus.core.dsl.values import Operand as ValueOperand
from argus.core.dsl.values import Value, ValueTest, chosen, in_formula
from argus.core.dtype import DType

V = TypeVar("V", Fragment, Value)


def _function(name: str, x: V) -> V:
    return cast(V, elementwise(name, cast(Fragment, x)))


def exp(x: V) -> V:
    """e to the power of each element."""
    return _function("exp", x)


def exp2(x: V) -> V:
    """2 to the power of each element."""
    return _function("exp2", x)


def log(x: V) -> V:
    """The natural logarithm of each element."""
    return _function("log", x)


def log2(x: V) -> V:
    """The logarithm to base 2 of each element."""
    return _function("log2", x)


def sqrt(x: V) -> V:
    """The square root of each element."""
    return _function("sqrt", x)


def reciprocal(x: V) -> V:
    """1 / x of each element on the special function unit, within one ulp; the operator `1 / x` is correctly rounded."""
    return _function("reciprocal", x)


def fma(a: Fragment, b: Operand, c: Operand) -> Fragment:
    """a * b + c, rounded once."""
    return elementwise("fma", a, b, c)


def tanh(x: V) -> V:
    """The hyperbolic tangent of each element; on sm_90a on the special function unit, with an error of 2^-11."""
    return _function("tanh", x)


def tanh_accurate(x: V) -> V:
    """The hyperbolic tangent of each element within two ulp, where `tanh` may be an instruction that is further off."""
    return _function("tanh_accurate", x)


def erf(x: V) -> V:
    """The error function of each element, within two ulp."""
    return _function("erf", x)


def expm1(x: V) -> V:
    """e to the power of each element, less 1: within two ulp, also of small results."""
    return _function("expm1", x)


def log1p(x: V) -> V:
    """The natural logarithm of 1 more than each element: within three ulp, also of small results."""
    return _function("log1p", x)


def power(x: V, y: Operand) -> V:
    """x to the power of y, within two ulp; NaN of a negative element and a y that is no integer."""
    return cast(V, elementwise("pow", cast(Fragment, x), y))


def philox(first: V, step: Operand, thread: Operand, word: Operand, key_low: Operand, key_high: Operand) -> V:
    """Random bits by Philox4x32-10, as an integer from -2^31 to 2^31 - 1 for each element, all of 32 bits.

    The word of this number, from 0 to 3, of the block of the counter (first + step, thread) and the key, less 2^31: at
    most `argus.core.philox.greatest_below(p)` with probability p, of the elements that torch's dropout keeps.
    """
    return cast(V, elementwise("philox", cast(Fragment, first), step, thread, word, key_low, key_high))


def sin(x: V) -> V:
    """The sine of each element, within three ulp, however large it is."""
    return _function("sin", x)


def cos(x: V) -> V:
    """The cosine of each element, within three ulp, however large it is."""
    return _function("cos", x)


def floor(x: V) -> V:
    """The greatest integer at most each element."""
    return _function("floor", x)


def ceil(x: V) -> V:
    """The least integer at least each element."""
    return _function("ceil", x)


def round_even(x: V) -> V:
    """The nearest integer of each element, the even one of two that are as near."""
    return _function("round", x)


def sign(x: V) -> V:
    """1, 0 or -1, as each element is above, at or below 0; 0 of NaN."""
    return _function("sign", x)


def round_bf16(x: V) -> V:
    """The nearest bf16 of each element, ties to even, in the operand's type.

    In a formula, a function of its own, of which nothing else is known but that it is 0 at 0; `x.to(bf16)` is x there.
    So x - round_bf16(x), what bf16 leaves of x, is no 0 in a formula.
    """
    return _function("round_bf16", x)


def rsqrt(x: V) -> V:
    """One over the square root of each element."""
    return _function("rsqrt", x)


@overload
def where(cond: Bool, then: Int | int, other: Int | int) -> Int: ...


@overload
def where(cond: ElementCondition, then: Fragment, other: Operand) -> Fragment: ...


@overload
def where(cond: ElementCondition, then: Operand, other: Fragment) -> Fragment: ...


@overload
def where(cond: Mask, then: Operand, other: Operand, *, dtype: DType | None = None) -> Fragment: ...


@overload
def where(cond: ValueTest | Bool, then: Value, other: ValueOperand) -> Value: ...


@overload
def where(cond: ValueTest | Bool, then: ValueOperand, other: Value) -> Value: ...


@overload
def where(cond: ValueTest, then: ValueOperand, other: ValueOperand) -> Value: ...


def where(cond: object, then: object, other: object, *, dtype: DType | None = None) -> Fragment | Int | Value:
    """`then` at elements where the condition holds, else `other`; an integer if both are integers.

    dtype: the element type where both are numbers, `where(x > 0, 1, 0, dtype=i8)`; by default that of what is compared.
    The condition is on coordinates (`row < column`, with `row, column = x.index`) or compares elements.
    """
    if isinstance(cond, Bool) and isinstance(then, Int | int) and isinstance(other, Int | int):
        return Int(algebra.pick(cond.node, unwrap(then), unwrap(other)))
    if in_formula():
        return chosen(cast(Bool, cond), then, other)
    return select(cast(ElementCondition, cond), cast(Operand, then), cast(Operand, other), dtype)
