"""Integer arithmetic and choices by comparisons: what stays known of them, and that each operand must be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.ir import Kernel, Lit, Map, Op, walk
from argus.core.ir.surgery import with_stmts
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown, Verdict
from argus.language import (
    Fragment,
    Tensor,
    assert_written_once,
    assume,
    block_id,
    copy,
    i32,
    load,
    maximum,
    registers,
    sm_90a,
    spread,
    tag,
    where,
)
from argus.report.summary import results
from argus.verifier.kernel import verify
from property_tests.small.tracing import trace

BY = spread((128,), threads=32, vector=4)
Function = Callable[[Fragment, Fragment], Fragment]


def stored(of: Function, ahead: int = 0) -> Kernel:
    """A kernel that stores a function of X and V, which it reads `ahead` tiles on."""

    def body(X: Tensor, V: Tensor, Y: Tensor) -> None:
        (N,) = X.shape
        tag(X, lambda n: dict(n=n))
        tag(V, lambda n: dict(n=n))
        assume(N % 128 == 0)
        (i,) = block_id((N // 128,))
        x, v = load(X.tile((128,), (i,)), BY), load(V.tile((128,), (i + ahead,)), BY, edge=0)
        copy(of(x, v), Y.tile((128,), (i,)))
        assert_written_once(Y, lambda n: dict(n=n))

    return trace(body, sm_90a.name, 32, X=("N", i32), V=("N", i32), Y=("N", i32))


def verdict(kernel: Kernel) -> Verdict:
    return verify(kernel, solver="z3", budget=Budget.about(2.0)).verdict


FUNCTIONS: list[tuple[Function, str]] = [
    (lambda x, v: 3 * x - v, "i32(i32(3 * X) - V)"),
    (maximum, "max(X, V)"),
    (lambda x, v: where(x < v, -x, v), "where(X < V, i32(neg(X)), V)"),
    (lambda x, v: where((x < v) | ~(x == 2), x, v), "where(X < V, X, where(X == 2, V, X))"),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("of", "form"), FUNCTIONS)
def test_the_words_of_integers_say_where_they_wrap_around(of: Function, form: str) -> None:
    assert form in " ".join(results(verdict(stored(of))))


@pytest.mark.share(4)
@pytest.mark.parametrize("of", [of for of, _ in FUNCTIONS])
def test_elements_of_other_tiles_are_not_combined(of: Function) -> None:
    found = verdict(stored(of, ahead=1))

    assert not isinstance(found, Proved)


def test_numbers_compared_alone_are_named_only_in_words() -> None:
    """A tag of what is compared is none of the result."""
    found = verdict(stored(lambda x, v: where(v < 0, x, 1)))

    assert results(found) == ("each element of `Y` is where(V < 0, X, 1)",)


def test_what_is_compared_must_have_been_written() -> None:
    def of(x: Fragment, _: Fragment) -> Fragment:
        return where(registers(i32, BY) < x, x, 1)

    found = verdict(stored(of))

    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I38"


def test_a_sum_of_numbers_that_wraps_around_is_unknown() -> None:
    """2^30 + 2^30 is no integer of 32 bits; over the reals it would be a number."""

    def of(x: Fragment, _: Fragment) -> Fragment:
        return x + 1

    kernel = stored(of)
    assert isinstance(verdict(kernel), Proved)
    stmt = next(each for each in walk(kernel.body) if isinstance(each, Map))
    assert isinstance(stmt.elem, Op)
    element, half = stmt.elem.args[0], Lit(2.0**30)
    large = evolve(stmt, elem=Op("add", (element, Op("add", (half, half)))))

    found = verdict(with_stmts(kernel, stmt, [large]))

    assert isinstance(found, Unknown)
    assert "`wrapped i32` of numbers" in found.reason
