"""Whether two expressions differ in numbers: in float64, and exactly where that is possible."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from argus.core.index import Cond, Symbol
from argus.core.values.drawn import INTEGERS, seeded
from argus.core.values.evaluation import Evaluation, NoExactValueError
from argus.core.values.expr import Choose, Compare, Expr, Fn
from argus.core.values.rewriting import free_symbols, nodes
from argus.core.walk import evaluate, symbols

_LARGE = 1e8
_NEAR = 1e-6
_SIZES = (1, 2, 3, 5, 4, 7, 0, 6, 9)
_ROOTS = frozenset(("exp", "log", "sqrt", "rsqrt", "exp2", "log2", "tanh", "sigmoid", "pow"))
"""Operations whose exact values are not those of the reals."""


def sizes_of(names: Iterator[Symbol] | list[Symbol], facts: tuple[Cond, ...], count: int) -> list[dict[Symbol, int]]:
    """So many different sizes within the symbols' ranges, at which the facts hold."""
    ordered = sorted(names, key=lambda symbol: symbol.name)
    found: list[dict[Symbol, int]] = []
    for turn in range(8 * count):
        sizes = {
            each: max(each.low or 0, _SIZES[(turn * (2 * i + 1) + i) % len(_SIZES)]) for i, each in enumerate(ordered)
        }
        if sizes not in found and all(evaluate(fact, sizes, arrays=INTEGERS) for fact in facts):
            found.append(sizes)
        if len(found) == count:
            break
    return found


def differ(a: Expr, b: Expr, facts: tuple[Cond, ...] = (), count: int = 5) -> bool:
    """Whether the numbers differ somewhere by more than rounding explains."""
    names = list(free_symbols(a) | free_symbols(b) | symbols(*facts))
    exactly = not _functions(a, b) & _ROOTS
    for seed, sizes in enumerate(sizes_of(names, facts, count), 100):
        at = Evaluation(sizes, seeded(seed), False, seed)
        x, y = float(at.value(a)), float(at.value(b))
        usable = isfinite(x) and isfinite(y) and max(abs(x), abs(y)) < _LARGE
        if usable and abs(x - y) > _NEAR * max(1.0, abs(x), abs(y)):
            return True
        if exactly and _differ_exactly(a, b, Evaluation(sizes, seeded(seed), True, seed)):
            return True
    return False


def _differ_exactly(a: Expr, b: Expr, at: Evaluation) -> bool:
    try:
        return at.value(a) != at.value(b)
    except NoExactValueError:
        return False


def lost(held: Expr, formula: Expr, facts: tuple[Cond, ...] = (), count: int = 5) -> bool:
    """Whether the formula has a number somewhere and what is held has none: it divides by 0, say.

    Not asked of comparisons of values: float64 gives them no value where rounding may decide them.
    """
    if any(isinstance(each, Choose) and isinstance(each.test, Compare) for each in nodes(held)):
        return False
    names = list(free_symbols(held) | free_symbols(formula) | symbols(*facts))
    for seed, sizes in enumerate(sizes_of(names, facts, count), 100):
        at = Evaluation(sizes, seeded(seed, low=-1, high=1, per=1), False, seed)
        if isfinite(float(at.value(formula))) and not isfinite(float(at.value(held))):
            return True
    return False


def _functions(*of: Expr) -> set[str]:
    return {each.name for one in of for each in nodes(one) if isinstance(each, Fn)}
