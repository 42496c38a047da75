"""Checks of recurrences and of guarded divisors are needed: with one switched off, a wrong kernel holds its formula."""

# ruff: noqa: UP037
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from argus.core.dsl.formulas import Value
from argus.core.dsl.kernel import Template
from argus.core.proof.values.held import carried, elements, fractions
from argus.language import (
    Int,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    greatest,
    i32,
    kernel,
    least,
    load,
    loop,
    maximum,
    product,
    reciprocal,
    registers,
    scalar,
    sm_90a,
    spread,
    total,
    where,
)
from tests.core.proof.test_held_recurrences import holds

BY = spread((64,), threads=64, vector=1)


def all_over_a_part(*, of_the_part: bool) -> Template:
    """A sum times a count divided by itself, or by 1 where it is 0: the sum, if nothing else is in it."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], W: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        (m,) = block_id((ceil_div(M, 64),))
        sums, count = registers(f32, BY), registers(f32, BY)
        sums[:] = 0.0
        count[:] = 0.0
        for i in loop(N):
            v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
            w = load(W.T[i].tile((64,), (m,)), BY, edge=0)
            sums[:] = sums + (where(w > 0.0, v, 0.0) if of_the_part else v)
            count[:] = count + where(w > 0.0, 1.0, 0.0)
        copy(sums * (count / where(count == 0.0, 1.0, count)), Y.tile((64,), (m,)), edge=0)
        if of_the_part:
            assert_equals(Y, lambda r: total(lambda j: where(W[r, j] > 0, X[r, j], 0), over=N))
        else:
            assert_equals(Y, lambda r: total(lambda j: X[r, j], over=N))

    return made


def place_of_a_record(*, keeps: bool, descending: bool = False) -> Template:
    """Where an element is above the greatest one before it, or only above the one before it, the last time."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        assume(N >= 1)
        (m,) = block_id((ceil_div(M, 64),))
        best, at = registers(f32, BY), registers(f32, BY)
        best[:] = -inf
        at[:] = 0.0
        for i in loop(N):
            v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
            at[:] = where(v > best, -i if descending else i, at)
            best[:] = maximum(best, v) if keeps else v
        copy(at, Y.tile((64,), (m,)), edge=0)

        def top(r: Int) -> Value:
            return greatest(lambda j: X[r, j], over=N)

        if keeps and descending:
            assert_equals(Y, lambda r: least(lambda j: where(X[r, j] == top(r), -j, inf), over=N))
        elif keeps:
            assert_equals(Y, lambda r: least(lambda j: where(X[r, j] == top(r), j, inf), over=N))
        else:
            assert_equals(Y, lambda r: least(lambda j: where(X[r, j] == X[r, N - 1], j, inf), over=N))

    return made


def decays_by(*, infinite: bool) -> Template:
    """h = a h + x from 0, where a factor is the reciprocal of an element, or the element.

    The first factor is not in the formula, but 0 times the reciprocal of 0 is not 0.
    """

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], A: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        assume(N >= 1)
        (m,) = block_id((ceil_div(M, 64),))
        h = registers(f32, BY)
        h[:] = 0.0
        for i in loop(N):
            a = load(A.T[i].tile((64,), (m,)), BY, edge=1)
            h[:] = h * (1.0 / a if infinite else a) + load(X.T[i].tile((64,), (m,)), BY, edge=0)
        copy(h, Y.tile((64,), (m,)), edge=0)

        def after(r: Int, j: Int) -> Value:
            return product(lambda k: reciprocal(A[r, k]) if infinite else A[r, k], over=(j + 1, N))

        assert_equals(Y, lambda r: total(lambda j: X[r, j] * after(r, j), over=N))

    return made


@kernel(target=sm_90a, threads=64)
def wraps_around(X: Tensor["M", i32], Y: Tensor["M", i32]) -> None:
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0) + 1, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: scalar(X[r]) + 1)


def always(*_: object) -> bool:
    return True


def all_vanishes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fractions, "vanishes_with", always)


def all_extrema_continue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(carried, "_extends", always)


def all_are_numbers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(carried, "is_number", always)


def no_integer_wraps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elements, "_EXACT", ("add",))
    patch.setattr(elements, "extremum", elements.fn)


CASES: dict[str, tuple[Template, Callable[[pytest.MonkeyPatch], None]]] = {
    "a sum of more than is counted": (all_over_a_part(of_the_part=False), all_vanishes),
    "above the one before, not the greatest": (place_of_a_record(keeps=False), all_extrema_continue),
    "a factor that may be infinite": (decays_by(infinite=True), all_are_numbers),
    "an integer that wraps around": (wraps_around, no_integer_wraps),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_kernel_slips_past_without_the_check(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    template, switch_off = CASES[case]
    assert not holds(template)

    switch_off(monkeypatch)

    assert holds(template)


RIGHT = (all_over_a_part(of_the_part=True), place_of_a_record(keeps=True), decays_by(infinite=False))


@pytest.mark.share(6)
@pytest.mark.parametrize("template", RIGHT)
def test_a_right_kernel_holds_its_formula(template: Template) -> None:
    assert holds(template)


def test_the_first_place_counted_down_is_not_the_least() -> None:
    assert not holds(place_of_a_record(keeps=True, descending=True))
