"""Formulas, the shapes in which programs compute them, and one-edit wrong twins of those."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Protocol

from attrs import frozen

from argus.core import algebra
from argus.core.algebra import IndexLike, add, lt, minimum, mul, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values.expr import Expr, ExprLike, ReduceOp, choose, compare, element, expr, fn, infinity, reduce_

NONE, ALL = infinity(-1), infinity(1)


Formula = Callable[[IndexLike], Expr]
Condition = Callable[[Index], Cond]


def size(name: str, low: int = 1) -> Index:
    """A size, or another integer of at least `low`."""
    return sym(Symbol(name, "size", low))


class Fold(Protocol):
    """A reduction over [low, high) of a body, as the language writes it."""

    def __call__(
        self, low: IndexLike, high: IndexLike, body: Callable[[Index], ExprLike], where: Condition = ..., /
    ) -> Expr: ...


def _everywhere(_: Index) -> Cond:
    return algebra.TRUE


def _fold(op: ReduceOp) -> Fold:
    def fold(
        low: IndexLike, high: IndexLike, body: Callable[[Index], ExprLike], where: Condition = _everywhere, /
    ) -> Expr:
        here = Symbol(f"j{next(_numbers)}", "fresh")
        return reduce_(op, here, low, high, body(sym(here)), where(sym(here)))

    return fold


_numbers = count()
total, greatest, least, product = _fold("sum"), _fold("max"), _fold("min"), _fold("product")


def along(of: Formula) -> Formula:
    """An element or a term, by its index."""
    return of


@frozen
class Case:
    """What a program holds, the formula, and what holds after one wrong edit."""

    held: Expr
    formula: Expr
    wrong: Expr
    facts: tuple[Cond, ...] = ()


N, K, B, T, R = size("N"), size("k", 0), size("B"), size("T"), size("r", 0)
C, Q, E = size("c", 0), size("q", 0), size("e", 0)
_BLOCK = mul(K, B), mul(add(K, 1), B)
J, NEXT, BOTH = (0, _BLOCK[0]), _BLOCK, (0, _BLOCK[1])


def exp(x: ExprLike) -> Expr:
    return fn("exp", x)


def log(x: ExprLike) -> Expr:
    return fn("log", x)


def x(n: IndexLike) -> Expr:
    return element("X", R, n)


def v(n: IndexLike) -> Expr:
    return element("V", n, E)


v_c = x(C)
top = greatest(0, N, x)
whole = total(0, N, lambda j: exp(x(j) - top))
soft = exp(v_c) / total(0, N, lambda j: exp(x(j)))
mean = total(0, N, x) / N
half, quarter = Fraction(1, 2), Fraction(1, 4)


def one(_: IndexLike) -> Expr:
    return expr(1)


@frozen
class Online:
    """One step of a loop from its hypothesis over [0, kB), with [kB, (k+1)B) added.

    scale, base: weights are base(scale * score). owes: whether the old sums are rescaled to the new maximum.
    """

    score: Formula
    scale: Fraction = Fraction(1)
    base: str = "exp"
    owes: bool = True

    @property
    def old(self) -> Expr:
        return greatest(*J, self.score)

    @property
    def now(self) -> Expr:
        return fn("max", self.old, greatest(*NEXT, self.score))

    def power(self, of: Expr) -> Expr:
        return fn(self.base, of * self.scale)

    def sum(self, weight: Formula = one) -> Expr:
        """The weighted sum after the step."""
        old, now = self.old, self.now
        kept = total(*J, lambda j: weight(j) * self.power(self.score(j) - old))
        owed = self.power(old - now) if self.owes else expr(1)
        return kept * owed + total(*NEXT, lambda j: weight(j) * self.power(self.score(j) - now))


def softmax_cases() -> dict[str, Case]:
    step = Online(x)
    lazy = greatest(0, minimum(mul(K, B), N), x)
    stale = element("M", R)
    return {
        "online softmax, step": Case(
            step.sum(), total(*BOTH, lambda j: exp(x(j) - step.now)), Online(x, owes=False).sum()
        ),
        "softmax": Case(exp(v_c - top) / whole, soft, exp(v_c) / whole),
        "softmax without a maximum": Case(
            exp(v_c) / total(0, N, lambda j: exp(x(j))), soft, exp(v_c) / total(1, N, lambda j: exp(x(j)))
        ),
        "softmax times the inverse": Case(exp(v_c - top) * fn("reciprocal", whole), soft, exp(v_c - top) * whole),
        "exp(v - m - log s)": Case(exp(v_c - top - log(whole)), soft, exp(v_c - log(whole))),
        "(v - m) - log s": Case((v_c - top) - log(whole), log(soft), v_c - log(whole)),
        "log softmax, m + log s first": Case(
            v_c - (top + log(whole)), v_c - log(total(0, N, lambda j: exp(x(j)))), v_c - (top - log(whole))
        ),
        "log softmax in base 2": Case(
            v_c - (top + fn("log2", whole) * log(2)),
            v_c - log(total(0, N, lambda j: exp(x(j)))),
            v_c - (top + fn("log2", whole)),
        ),
        "softmax * 0.5 + 0.5": Case(
            exp(v_c - top) * half / whole + half, half * soft + half, exp(v_c - top) * half / whole + quarter
        ),
        "softmax in base 2 with fma": Case(
            fn("exp2", fn("fma", v_c, 1 / log(2), -(top * (1 / log(2)))))
            / total(0, N, lambda j: fn("exp2", fn("fma", x(j), 1 / log(2), -(top * (1 / log(2)))))),
            soft,
            fn("exp2", v_c - top) / whole,
        ),
        "attention sink": Case(
            exp(v_c - top) / (whole + exp(-top)),
            exp(v_c) / (total(0, N, lambda j: exp(x(j))) + 1),
            exp(v_c - top) / (whole + 1),
        ),
        "dropout scale": Case(
            exp(v_c - top) * Fraction(5, 4) / whole, Fraction(5, 4) * soft, exp(v_c - top) * Fraction(4, 5) / whole
        ),
        "lazy rescale: another row's value as the maximum": Case(
            exp(v_c - stale) / total(0, N, lambda j: exp(x(j) - stale)),
            soft,
            exp(v_c - stale) / total(0, N, lambda j: exp(x(j) - top)),
        ),
        "maximum of a clipped prefix": Case(
            fn("max", lazy, greatest(mul(K, B), minimum(mul(add(K, 1), B), N), x)),
            greatest(0, minimum(mul(add(K, 1), B), N), x),
            fn("max", lazy, greatest(mul(K, B), mul(K, B), x)),
            (lt(mul(K, B), N), algebra.le(mul(K, B), N), algebra.le(mul(K, B), minimum(mul(add(K, 1), B), N))),
        ),
        "log-sum-exp": Case(log(whole) + top, log(total(0, N, lambda j: exp(x(j)))), log(whole) - top),
    }


def attention_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    score = along(lambda j: element("S", Q, j))
    scores: dict[str, Formula] = {
        "scores": score,
        "bias": lambda j: score(j) + element("Bias", Q, j),
        "ALiBi": lambda j: score(j) + (expr(j) - expr(Q)) * element("slope"),
        "soft cap": lambda j: 10 * fn("tanh", score(j) / 10),
        "x + |x|": lambda j: score(j) + fn("abs", score(j)),
        "an unknown function": lambda j: fn("mystery", score(j)),
    }
    for name, f in scores.items():
        for base in ("exp", "exp2"):
            found[f"attention, {name}, {base}"] = _attention(f, base)
    gate = along(lambda j: fn("sigmoid", score(j)))
    found["sigmoid attention"] = Case(
        total(*J, lambda j: gate(j) * v(j)) + total(*NEXT, lambda j: gate(j) * v(j)),
        total(*BOTH, lambda j: v(j) / (1 + exp(-score(j)))),
        total(*J, lambda j: gate(j) * v(j)) + total(*NEXT, lambda j: v(j) / (1 + exp(score(j)))),
    )
    relu = along(lambda j: fn("relu", score(j)))
    found["ReLU attention"] = Case(
        total(*J, lambda j: relu(j) * v(j))
        + total(*NEXT, lambda j: choose(compare("<", 0, score(j)), score(j) * v(j), 0)),
        total(*BOTH, lambda j: relu(j) * v(j)),
        total(*J, lambda j: relu(j) * v(j)) + total(*NEXT, lambda j: choose(compare("<", 0, score(j)), v(j), 0)),
    )
    return found


def _attention(score: Formula, base: str) -> Case:
    step, wrong = (Online(score, quarter, base, owes=owes) for owes in (True, False))
    weights = along(lambda j: fn(base, score(j) * quarter))
    meant = total(*BOTH, lambda j: v(j) * weights(j)) / total(*BOTH, weights)
    return Case(step.sum(v) / step.sum(), meant, wrong.sum(v) / step.sum())
