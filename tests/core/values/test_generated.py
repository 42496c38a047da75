from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.core.algebra import le, sym
from argus.core.values.drawn import seeded
from argus.core.values.equality import Different, Equal, equal
from argus.core.values.evaluation import Evaluation, NoExactValueError
from argus.core.values.expr import Choose, Compare, Expr, choose
from tests.core.values.generated import EDITS, SIZES, TRANSFORMATIONS, expressions, rebuilt

_AT = ((1, 0, 1), (3, 2, 2), (4, 1, 3), (2, 3, 1))
_LARGE = 1e8


def changed(of: Expr, change: Callable[[Expr], Expr | None], place: int) -> Expr | None:
    """The expression with the change made at its `place`-th possible place, None if there are fewer."""
    left = place
    done = False

    def once(part: Expr) -> Expr | None:
        nonlocal left, done
        found = change(part)
        if done or found is None:
            return None
        left -= 1
        done = left < 0
        return found if done else None

    result = rebuilt(of, once)
    return result if done else None


def differ(a: Expr, b: Expr) -> bool:
    """Whether the numbers differ somewhere, in float64 or exactly, by more than rounding explains."""
    for numbers in _AT:
        sizes = dict(zip(SIZES, numbers, strict=True))
        for seed in range(100, 103):
            floats, exact = (Evaluation(sizes, seeded(seed), each, seed) for each in (False, True))
            x, y = float(floats.value(a)), float(floats.value(b))
            usable = isfinite(x) and isfinite(y) and max(abs(x), abs(y)) < _LARGE
            if usable and abs(x - y) > 1e-5 * max(1.0, abs(x), abs(y)):
                return True
            try:
                left, right = _rational(exact, a), _rational(exact, b)
            except NoExactValueError:
                continue
            if left is not None and right is not None and left != right:
                return True
    return False


def lost(held: Expr, formula: Expr) -> bool:
    """Whether the formula has a number somewhere and what is held has none: it divides by 0, say.

    Not asked of comparisons of values: float64 gives them no value where rounding may decide them.
    """
    if _compares(held):
        return False
    for numbers in _AT:
        sizes = dict(zip(SIZES, numbers, strict=True))
        for seed in range(100, 103):
            at = Evaluation(sizes, seeded(seed, low=-1, high=1, per=1), False, seed)
            if isfinite(float(at.value(formula))) and not isfinite(float(at.value(held))):
                return True
    return False


def _rational(at: Evaluation, of: Expr) -> object:
    """The exact value; None if the expression has an operation whose exact value is not that of the reals."""
    return at.value(of) if not _names(of) & {"exp", "log", "sqrt", "tanh"} else None


def _names(of: Expr) -> set[str]:
    found: set[str] = set()

    def look(part: Expr) -> None:
        name = getattr(part, "name", None)
        if isinstance(name, str):
            found.add(name)

    rebuilt(of, look)
    return found


def _compares(of: Expr) -> bool:
    found = False

    def look(part: Expr) -> None:
        nonlocal found
        found = found or (isinstance(part, Choose) and isinstance(part.test, Compare))

    rebuilt(of, look)
    return found


_CASES = settings(deadline=None, max_examples=150)


@pytest.mark.share(40)
@pytest.mark.parametrize("name", [*TRANSFORMATIONS, *EDITS])
@_CASES
@given(of=expressions(), place=st.integers(0, 3))
def test_expressions_that_are_equal_have_equal_values(name: str, of: Expr, place: int) -> None:
    other = changed(of, {**TRANSFORMATIONS, **EDITS}[name], place)
    if other is not None and isinstance(equal(other, of), Equal):
        assert not differ(other, of)
        assert not lost(other, of)


@pytest.mark.share(24)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
@_CASES
@given(of=expressions(), place=st.integers(0, 3))
def test_a_right_transformation_is_never_refuted(name: str, of: Expr, place: int) -> None:
    other = changed(of, TRANSFORMATIONS[name], place)

    assert other is None or not isinstance(equal(other, of), Different)


@pytest.mark.share(3)
@given(a=expressions(1), b=expressions(1), c=expressions(1), low=st.integers(0, 4))
def test_a_guarded_quotient_is_no_sum_of_products(a: Expr, b: Expr, c: Expr, low: int) -> None:
    """Where the divisor is 0 outside of its branch, the sum has no value."""
    formula = choose(le(low, sym(SIZES[0])), a / b, c)
    held = EDITS["unguarded"](formula)

    assert held is not None
    assert not isinstance(equal(held, formula), Equal) or not lost(held, formula)
