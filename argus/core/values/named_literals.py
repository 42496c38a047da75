"""Literals that stand for irrational numbers: the nearest floats of multiples of log2(e) and ln(2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import log

from attrs import frozen

from argus.core.values.expr import Expr, Fn, Number, expr, fn
from argus.core.values.rewriting import map_parts

_LN_2 = fn("log", expr(2))
_NAMES: Mapping[str, tuple[float, Expr]] = {"log2(e)": (1 / log(2), fn("div", 1, _LN_2)), "ln(2)": (log(2), _LN_2)}
_LINEAR = frozenset(("add", "sub", "mul", "div", "neg"))
_F32_BITS = 24
_FACTORS = 1024
"""Greatest factor, and denominator of one of a number that f64 rounds; f32 numbers have powers of 2 as factors."""


@frozen
class _Literal:
    """A literal, what it stands for, and that in words."""

    value: Fraction
    exact: Expr
    words: str


def named_literals(root: Expr) -> tuple[Expr, frozenset[str]]:
    """The expression with such literals replaced by what they stand for, and in words which ones were.

    Only where a change of base has them: in the argument of a power of 2, and times a logarithm.
    """
    said: set[str] = set()

    def exact(found: _Literal) -> Expr:
        said.add(found.words)
        return found.exact

    return _with_literals(root, exact), frozenset(said)


def rounded_literals(root: Expr) -> Expr:
    """The expression with such literals as a machine may round them, each in its own way: by a few 2^-22 of it."""
    places: dict[Fraction, int] = {}

    def rounded(found: _Literal) -> Expr:
        place = places.setdefault(found.value, len(places) + 1)
        return expr(found.value * (1 + place * Fraction(1, 1 << 22)))

    return _with_literals(root, rounded)


def _with_literals(root: Expr, by: Callable[[_Literal], Expr]) -> Expr:
    known: dict[tuple[Expr, bool], Expr] = {}

    def visit(node: Expr, *, named: bool) -> Expr:
        key = node, named
        if key not in known:
            known[key] = changed(node, named=named)
        return known[key]

    def changed(node: Expr, *, named: bool) -> Expr:
        found = _named(node.value) if named and isinstance(node, Number) else None
        if found is not None:
            return by(found)
        inside = isinstance(node, Fn) and (_begins(node) or (named and node.name in _LINEAR))
        return map_parts(node, lambda each: visit(each, named=inside), lambda index: index, lambda cond: cond)

    return visit(root, named=False)


def _begins(node: Fn) -> bool:
    """Whether a change of base has factors among the arguments: a power of 2, or a multiple of a logarithm."""
    return node.name == "exp2" or (node.name in ("mul", "div") and any(map(_has_logarithm, node.args)))


def _has_logarithm(of: Expr) -> bool:
    """Whether the value is a logarithm, or a sum that a logarithm, or a multiple of one, is added to."""
    if not isinstance(of, Fn):
        return False
    return of.name in ("log", "log2") or (of.name in _LINEAR and any(map(_has_logarithm, of.args)))


def _named(value: Fraction) -> _Literal | None:
    """What a literal stands for; None if it stands for itself."""
    if value.denominator < _FACTORS:
        return None
    for name, (number, exact) in _NAMES.items():
        ratio = value / Fraction(number)
        in_f32 = value.numerator.bit_length() <= _F32_BITS
        for bits, factor in ((52, ratio.limit_denominator(_FACTORS)), *([(23, _power_of_2(ratio))] if in_f32 else ())):
            if factor and abs(ratio / factor - 1) <= Fraction(1, 1 << bits) and abs(factor) <= _FACTORS:
                times = "" if factor == 1 else f"{factor} * "
                return _Literal(value, fn("mul", expr(factor), exact), f"{float(value):.10g} for {times}{name}")
    return None


def _power_of_2(ratio: Fraction) -> Fraction:
    """The nearest power of 2, with the sign of the number."""
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    ways = [Fraction(2) ** each * (1 if ratio > 0 else -1) for each in (exponent - 1, exponent, exponent + 1)]
    return min(ways, key=lambda each: abs(each - ratio))
