"""Functions of register tiles, element by element."""

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
    """One over each element by the unit for special functions: a unit in the last place from 1 / x, which is exact."""
    return elementwise("reciprocal", x)


def fma(a: Fragment, b: Operand, c: Operand) -> Fragment:
    """a * b + c, rounded once."""
    return elementwise("fma", a, b, c)


def tanh(x: Fragment) -> Fragment:
    """The hyperbolic tangent of each element; on sm_90a by the unit for special functions, 2^-11 from the exact one."""
    return elementwise("tanh", x)


def rsqrt(x: Fragment) -> Fragment:
    """One over the square root of each element."""
    return elementwise("rsqrt", x)
