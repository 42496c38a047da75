"""Terms that a sum adds and subtracts: what additions lost to rounding is 0 over the reals, infinities are not."""

# ruff: noqa: UP037
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from math import inf

import pytest

from argus.core import algebra
from argus.core.dsl.kernel import Template
from argus.core.proof.values.held import cancelled, loops
from argus.core.values.expr import Expr, element, fn, infinity
from argus.language import (
    Fragment,
    Tensor,
    assert_equals,
    block_id,
    ceil_div,
    copy,
    f32,
    kernel,
    load,
    loop,
    maximum,
    registers,
    sm_90a,
    spread,
    total,
)
from tests.core.proof.test_held_recurrences import holds

pytestmark = pytest.mark.share(3, among="terms that cancel")
BY = spread((64,), threads=64, vector=1)
X = element("X", algebra.const(0))


def compensated(*, lost: str = "of the addition", begun: bool = True) -> Template:
    """A sum in which each addition begins with what the last one lost [Kahan 1965]."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        (m,) = block_id((ceil_div(M, 64),))
        sums, carried = registers(f32, BY), registers(f32, BY)
        if begun:
            sums[:] = 0.0
        carried[:] = 0.0
        for i in loop(N):
            term = load(X.T[i].tile((64,), (m,)), BY, edge=0) + carried
            sum_ = sums + term
            carried[:] = next_carried(lost, sums, term, sum_)
            sums[:] = sum_
        copy(sums, Y.tile((64,), (m,)), edge=0)
        assert_equals(Y, lambda m: total(lambda n: X[m, n], over=N))

    return made


def next_carried(lost: str, sums: Fragment, term: Fragment, sum_: Fragment) -> Fragment:
    match lost:
        case "twice":
            return term + (sum_ - sums)
        case "of nothing":
            return term - (sum_ - term)
        case "of both":  # so that each of the two tiles is what the other makes of it
            return term - (sum_ + sums)
        case _:
            return term - (sum_ - sums)


def infinite_less_itself() -> Template:
    """A maximum from -inf is added and subtracted, which leaves no number."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        (m,) = block_id((ceil_div(M, 64),))
        best, left = registers(f32, BY), registers(f32, BY)
        best[:] = -inf
        left[:] = 0.0
        for i in loop(N):
            left[:] = (best + left) - best
            best[:] = maximum(best, load(X.T[i].tile((64,), (m,)), BY, edge=0))
        copy(left, Y.tile((64,), (m,)), edge=0)
        assert_equals(Y, lambda m: 0 * total(lambda n: X[m, n], over=N))

    return made


def test_what_additions_lost_is_nothing() -> None:
    assert holds(compensated())


def test_without_the_rule_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "cancelled", lambda of, _: of)
    assert not holds(compensated())


@pytest.mark.parametrize("lost", ["twice", "of nothing", "of both"])
def test_what_is_carried_wrongly_is_not_nothing(lost: str) -> None:
    assert not holds(compensated(lost=lost))


def test_a_sum_that_begins_with_garbage_less_itself_is_garbage() -> None:
    assert not holds(compensated(begun=False))


def test_an_infinity_less_itself_is_nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not holds(infinite_less_itself())
    monkeypatch.setattr(cancelled, "_numbers", lambda *_: True)
    assert holds(infinite_less_itself())


@pytest.mark.parametrize(
    ("of", "number"),
    [(fn("add", X, X), True), (fn("exp", X), False), (fn("div", 1, X), False), (infinity(1), False), (X, True)],
)
def test_what_may_be_infinite_does_not_cancel(of: Expr, number: bool) -> None:
    found = cancelled._numbers([of], lambda _: ())  # pyright: ignore[reportPrivateUsage]  # of any loop
    assert found is number
