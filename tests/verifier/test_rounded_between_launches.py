"""A number that an earlier launch of a program has rounded decides nothing as if it were exact."""

# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false
# Reason: names of sizes in annotations.

from collections.abc import Callable

import pytest
from attrs import evolve

from argus.core.proof.values.held import between, elements
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.language import (
    ProgramTemplate,
    Tensor,
    assert_equals,
    bf16,
    block_id,
    ceil_div,
    copy,
    f32,
    kernel,
    load,
    program,
    sm_90a,
    spread,
    where,
    workspace,
)
from argus.language import (
    elements as of,
)
from argus.verifier.program import verify_program

NO_RUNS = evolve(Budget(), runs=0)
BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def narrow(X: Tensor["M", f32], W: Tensor["M", bf16]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0).to(bf16), W.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def widen(W: Tensor["M", bf16], V: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(W.shape[0], 64),))
    copy(load(W.tile((64,), (m,)), BY, edge=0).to(f32), V.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def round_both(X: Tensor["M", f32], V: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0).to(bf16).to(f32), V.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def double(X: Tensor["M", f32], V: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0) * 2.0, V.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def compare_narrow(X: Tensor["M", f32], W: Tensor["M", bf16], Y: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    x, w = (load(each.tile((64,), (m,)), BY, edge=0) for each in (X, W))
    copy(where(w.to(f32) == x, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def compare(X: Tensor["M", f32], V: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    x, v = (load(each.tile((64,), (m,)), BY, edge=0) for each in (X, V))
    copy(where(v == x, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)


@program
def by_its_type(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    W = workspace(bf16, X.shape)
    narrow(X, W)
    compare_narrow(X, W, Y)
    assert_equals(Y, lambda _: 1)


@program
def within_the_first(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    V = workspace(f32, X.shape)
    round_both(X, V)
    compare(X, V, Y)
    assert_equals(Y, lambda _: 1)


@program
def two_launches_before(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    W, V = workspace(bf16, X.shape), workspace(f32, X.shape)
    narrow(X, W)
    widen(W, V)
    compare(X, V, Y)
    assert_equals(Y, lambda _: 1)


@program
def not_rounded(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    V = workspace(f32, X.shape)
    double(X, V)
    compare(X, V, Y)
    assert_equals(Y, lambda r: where(2 * of(X)(r) == of(X)(r), 1, 0))


def unchanged(*given: object) -> object:
    return next(each for each in given if not isinstance(each, elements.Elements))


@pytest.mark.share(4, among="verifier: checks of values")
@pytest.mark.parametrize("wrong", [by_its_type, within_the_first, two_launches_before], ids=lambda each: each.name)
def test_it_slips_past_if_what_a_type_holds_is_taken_for_exact(
    wrong: ProgramTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(verify_program(wrong, solver="z3", budget=NO_RUNS).verdict, Unknown)

    taken: Callable[..., object] = unchanged
    monkeypatch.setattr(between, "narrowed", taken)
    monkeypatch.setattr(elements.Elements, "_rounded", taken)

    assert isinstance(verify_program(wrong, solver="z3", budget=NO_RUNS).verdict, Proved)


def test_numbers_of_f32_decide_in_later_launches() -> None:
    assert isinstance(verify_program(not_rounded, solver="z3", budget=NO_RUNS).verdict, Proved)
