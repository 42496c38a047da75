"""Checks of what cells hold are needed: with one switched off, a wrong kernel holds its formula."""

# ruff: noqa: UP037
# pyright: reportArgumentType=false, reportOperatorIssue=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from argus.core import algebra
from argus.core.dsl.kernel import Template
from argus.core.index import Symbol
from argus.core.proof.values.held import cells, folds, iterations, rescaling
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.values.expr import Expr, element, expr, fn, reduce_
from argus.core.values.rewriting import free_symbols, written_size
from argus.language import (
    Fragment,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    eq,
    exp,
    f16,
    f32,
    kernel,
    load,
    loop,
    maximum,
    registers,
    sm_90a,
    spread,
    total,
    where,
)
from tests.core.proof.test_held import analysed

Step = Callable[[Fragment, Fragment, Fragment, Fragment], Fragment]
BY = spread((64,), threads=64, vector=1)


def holds_its_formula(template: Template) -> bool:
    """Whether what is stored equals the formula of the kernel's one `assert_equals`."""
    (found,) = (each for each in analysed(template.trace()).obligations if "assert_equals" in each.what)
    return not found.unknown


def row_sum(start: float, least: int) -> Template:
    """The sum of a row, of which the first iteration sets what was `start` before; rows have at least so many."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        assume(least <= N)
        (m,) = block_id((ceil_div(M, 64),))
        acc = registers(f32, BY)
        acc[:] = start
        for i in loop(N):
            v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
            acc[:] = where(eq(i, 0), v, acc + v)
        copy(acc, Y.tile((64,), (m,)), edge=0)
        assert_equals(Y, lambda r: total(lambda j: X[r, j], over=N))

    return made


def online(step: Step, *, start: float = -inf, weight_of_start: float = 0.0, masked: bool = False) -> Template:
    """The sum of exp(x - reference) with a running maximum as reference. masked: without the first two elements."""

    @kernel(target=sm_90a, threads=64)
    def made(X: Tensor["M N", f32], Y: Tensor["M", f32]) -> None:
        M, N = X.shape
        assume(N >= 3)
        (m,) = block_id((ceil_div(M, 64),))
        greatest, weight, new = registers(f32, BY), registers(f32, BY), registers(f32, BY)
        greatest[:] = start
        weight[:] = weight_of_start
        for i in loop(N):
            v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
            if masked:
                v = where(i >= 2, v, -inf)
            new[:] = maximum(greatest, v)
            weight[:] = step(weight, greatest, new, v)
            greatest[:] = new
        copy(weight * exp(greatest), Y.tile((64,), (m,)), edge=0)
        assert_equals(Y, lambda r: total(lambda j: exp(X[r, j]), over=(2 if masked else 0, N)))

    return made


def rescaled(weight: Fragment, old: Fragment, new: Fragment, v: Fragment) -> Fragment:
    return weight * exp(old - new) + exp(v - new)


def guarded(weight: Fragment, old: Fragment, new: Fragment, v: Fragment) -> Fragment:
    finite = where(new == -inf, 0.0, new)
    return weight * exp(old - finite) + exp(v - finite)


def rescaled_twice(weight: Fragment, old: Fragment, new: Fragment, v: Fragment) -> Fragment:
    return weight * exp(old - new) * exp(old - new) + exp(v - new)


@kernel(target=sm_90a, threads=64)
def beyond_f16(X: Tensor["M", f16], Y: Tensor["M", f16]) -> None:
    """100,000 is infinite in f16."""
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0) * 100000.0, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: X[r] * 100000)


def always(*_: object, **__: object) -> bool:
    return True


def no_symbols(*_: object) -> frozenset[Symbol]:
    return frozenset()


def no_reason(_: object) -> str:
    return ""


def all_forms_begin_right(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(iterations.Known, "same", always)


def all_factors_rescale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rescaling.Rescaling, "_takes_terms_along", always)


def all_references_are_defined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rescaling.Rescaling, "_is_defined", always)


def nothing_is_there_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rescaling.Rescaling, "_begun", lambda *_: lambda *_: expr(0))


def all_types_hold_all_numbers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cells, "not_of_reals", no_reason)


CASES: dict[str, tuple[Template, Callable[[pytest.MonkeyPatch], None]]] = {
    "no iteration, and another start": (row_sum(5.0, 0), all_forms_begin_right),
    "rescaled twice": (online(rescaled_twice), all_factors_rescale),
    "a factor that may be NaN": (online(rescaled, masked=True), all_references_are_defined),
    "a weight before the first element": (online(rescaled, start=0.0, weight_of_start=1.0), nothing_is_there_before),
    "a literal beyond f16": (beyond_f16, all_types_hold_all_numbers),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_kernel_slips_past_without_the_check(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    template, switch_off = CASES[case]
    assert not holds_its_formula(template)

    switch_off(monkeypatch)

    assert holds_its_formula(template)


RIGHT = (
    row_sum(5.0, 1),
    row_sum(0.0, 0),
    online(rescaled),
    online(guarded, masked=True),
    online(rescaled, start=-1e30),
    online(rescaled, start=-1e30, masked=True),
)
"""Of a rescaled sum, any number is a reference to begin with."""


@pytest.mark.parametrize("template", RIGHT)
def test_a_right_kernel_holds_its_formula(template: Template) -> None:
    assert holds_its_formula(template)


@kernel(target=sm_90a, threads=64)
def doubled(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0) * 2.0, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: X[r] * 3)


def test_a_reason_shows_what_is_stored() -> None:
    (found,) = (each for each in analysed(doubled.trace()).obligations if "assert_equals" in each.what)
    assert "what is stored, `lambda i0: X[i0] * 2`, is not known to equal the formula" in found.unknown


def test_the_size_of_a_text_is_counted_without_writing_it() -> None:
    value = element("x", algebra.const(0))
    for _ in range(60):
        value = fn("add", value, value)
    assert written_size(value) == (1 << 61) - 1


def triangle() -> Expr:
    """The sum over i < 64 of the sum over j < i of x[i, j]."""
    i, j = (Symbol(f"~{number}", "fresh", 0) for number in (1, 2))
    body = reduce_("sum", j, 0, algebra.sym(i), element("x", algebra.sym(i), algebra.sym(j)))
    return reduction("sum", [Range(i, algebra.const(64))], body)


def test_a_range_that_depends_on_another_stays_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert free_symbols(triangle()) == frozenset()

    monkeypatch.setattr(folds, "symbols", no_symbols)

    assert free_symbols(triangle())
