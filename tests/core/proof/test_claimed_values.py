"""What a launch leaves is what its kernel claims, where several control paths store: only of formulas with a value."""

# ruff: noqa: UP037
# Reason: the name of a size is a text.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportGeneralTypeIssues=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: elements are values only while a formula is made.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from argus.core.proof.outputs import claimed_values
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown, Verdict
from argus.language import (
    Tensor,
    assert_equals,
    assume,
    block_id,
    copy,
    f32,
    i32,
    kernel,
    load,
    program,
    promise,
    reciprocal,
    scalar,
    sm_90a,
    spread,
    when,
    workspace,
)
from argus.verifier.program import verify_program

NO_RUNS = evolve(Budget(), runs=0)
TILE = (64, 64)
Of = Callable[[Any], Any]
FUNCTIONS: dict[str, tuple[Of, Of]] = {
    "twice": (lambda x: x * 2, lambda x: x * 2),
    "reciprocal": (reciprocal, lambda x: 1 / x),
}
"""What a kernel computes, and the same in a formula."""


def verdict_of(name: str, *, told: Of | None = None, claimed: bool = True) -> Verdict:
    """The verdict of a program of two launches. told: what it claims. claimed: whether its first kernel claims it."""
    of, same = FUNCTIONS[name]

    @kernel(target=sm_90a, threads=256)
    def first(X: Tensor["R 64", f32], firsts: Tensor["Q", i32], Y: Tensor["R 64", f32]) -> None:
        R, P = X.shape[0], firsts.shape[0] - 1
        promise(firsts, ascending=True, first=0, last=R, most=64)
        assume(P >= 1, R < 1 << 28)
        (p,) = block_id((P,))
        start, end = scalar(firsts[p]), scalar(firsts[p + 1])
        with when(start < end):
            rows = load(X.rows(start).tile(TILE, (0, 0)), spread(TILE, threads=256, vector=4), edge=0)
            copy(of(rows), Y.rows(start, end).tile(TILE, (0, 0)), edge=0)
        if claimed:
            assert_equals(Y, lambda r, n: same(X[r, n]))

    @kernel(target=sm_90a, threads=64)
    def second(Y: Tensor["R 64", f32], Z: Tensor["R 64", f32]) -> None:
        (r,) = block_id((Y.shape[0],))
        copy(load(Y[r], spread((64,), threads=64, vector=1)) + 1, Z[r])

    @program
    def both(X: Tensor["R 64", f32], firsts: Tensor["Q", i32], Z: Tensor["R 64", f32]) -> None:
        Y = workspace(f32, X.shape)
        first(X, firsts, Y)
        second(Y, Z)
        assert_equals(Z, lambda r, n: (told or same)(X[r, n]) + 1)

    return verify_program(both.trace(), solver="z3", budget=NO_RUNS).verdict


def test_a_claim_of_one_launch_is_what_the_next_one_reads() -> None:
    assert isinstance(verdict_of("twice"), Proved)


def test_nothing_is_known_without_the_claim() -> None:
    assert isinstance(verdict_of("twice", claimed=False), Unknown)


def test_another_formula_of_the_program_is_not_proved() -> None:
    assert isinstance(verdict_of("twice", told=lambda x: x * 3), Unknown)


def test_a_formula_that_may_have_no_value_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verdict_of("reciprocal"), Unknown)
    monkeypatch.setattr(claimed_values, "_is_total", lambda _: True)
    assert isinstance(verdict_of("reciprocal"), Proved)
