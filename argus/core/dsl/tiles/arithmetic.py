"""Elementwise functions of register tiles."""

from __future__ import annotations

from argus.core.dsl.tiles.fragments import Fragment, Operand, elementwise


def exp(x: Fragment) -> Fragment:
    """e to the power of each element."""
    return elementwise("exp", x)


def exp2(x: Fragment) -> Fragment:
    """2 to the power of each element."""
    return elementwise("exp2", x)


def log(x: Fragment) -> Fragment:
    """The natural logarithm of each element."""
    return elementwise("log", x)


def log2(x: Fragment) -> Fragment:
    """The logarithm to base 2 of each element."""
    return elementwise("log2", x)


def sqrt(x: Fragment) -> Fragment:
    """The square root of each element."""
    return elementwise("sqrt", x)


def reciprocal(x: Fragment) -> Fragment:
    """1 / x of each element on the special function unit, within one ulp; the operator `1 / x` is correctly rounded."""
    return elementwise("reciprocal", x)


def fma(a: Fragment, b: Operand, c: Operand) -> Fragment:
    """a * b + c, rounded once."""
    return elementwise("fma", a, b, c)


def tanh(x: Fragment) -> Fragment:
    """The hyperbolic tangent of each element; on sm_90a on the special function unit, with an error of 2^-11."""
    return elementwise("tanh", x)


def rsqrt(x: Fragment) -> Fragment:
    """One over the square root of each element."""
    return elementwise("rsqrt", x)
