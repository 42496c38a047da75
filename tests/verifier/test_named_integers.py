"""Integers in memory are symbols of names of their own: with equal names, a sum over the wrong rows is proved."""

# ruff: noqa: UP037
# Reason: an extent in quotes is an extent.

from __future__ import annotations

import re

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held import folds, named_integers
from argus.core.query import Budget
from argus.core.values.expr import element, expr, fn
from argus.core.verdict import Proved, Unknown
from argus.core.walk import symbols
from argus.language import (
    Int,
    Tensor,
    Value,
    assert_equals,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    i32,
    kernel,
    load,
    promise,
    scalar,
    sm_90a,
    spread,
)
from argus.verifier.kernel import verify

WITHOUT_RUNS = evolve(Budget(), runs=0)
PLACES = range(40)
DIGESTS = {(array, k): algebra.read(array, (algebra.const(k),)).digest for array in ("a", "a1") for k in PLACES}
FIRST = min(PLACES, key=lambda k: DIGESTS["a1", k])
"""The element of `a1` that is number 0 of all."""
OTHERS = sorted((k for k in PLACES if DIGESTS["a", k] > DIGESTS["a1", FIRST]), key=lambda k: DIGESTS["a", k])[:10]
"""Elements of `a`, of which the last is number 10."""


@kernel(target=sm_90a, threads=64, configs={"right": True, "wrong": False})
def added(X: Tensor["N", f32], a: Tensor["40", i32], a1: Tensor["40", i32], Y: Tensor["R", f32], *, cfg: bool) -> None:
    """Elements of X by integers of two tables; wrong: one of `a1` for one of `a`."""
    (N,), (R,) = X.shape, Y.shape
    promise(a, lambda i: (i >= 0) & (i < N))
    promise(a1, lambda i: (i >= 0) & (i < N))
    (m,) = block_id((ceil_div(R, 64),))
    claimed = [a[OTHERS[-1]], *(a[k] for k in OTHERS)]
    total, *rest = [
        load(_rows(X, scalar(each), R).tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0)
        for each in (claimed if cfg else (a1[FIRST], *claimed[1:]))
    ]
    for each in rest:
        total = total + each
    copy(total, Y.tile((64,), (m,)), edge=0)

    def formula(r: Int) -> Value:  # noqa: ARG001 reason: each row is the same
        x = elements(X)
        value = x(scalar(claimed[0]))
        for each in claimed[1:]:
            value = value + x(scalar(each))
        return value

    assert_equals(Y, formula)


def _rows(X: Tensor, at: Int, R: Int) -> Tensor:
    return X.gather((R,), lambda r: (at,))  # noqa: ARG005 reason: each row is the same


def as_before(name: str, kind: str, low: int) -> Symbol:
    """The tensor's name first: `~a` and 10 is then `~a1` and 0."""
    (number, array), assumed = re.fullmatch(r"~(\d+)(\w+)", name).groups(), "fresh"  # pyright: ignore[reportOptionalMemberAccess]  # it matches
    assert kind == assumed
    return Symbol(f"~{array}{number}", assumed, low)


@pytest.mark.share(3)
def test_other_integers_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verify(added, config="right", solver="z3", budget=WITHOUT_RUNS).verdict, Proved)
    assert isinstance(verify(added, config="wrong", solver="z3", budget=WITHOUT_RUNS).verdict, Unknown)
    monkeypatch.setattr(named_integers, "Symbol", as_before)
    assert isinstance(verify(added, config="wrong", solver="z3", budget=WITHOUT_RUNS).verdict, Proved)


def test_each_integer_has_a_name_of_its_own() -> None:
    arrays = ("a", "a1", "a10", "fold", "part", "_1", "block_")
    reads = [algebra.read(array, (algebra.const(k),)) for array in arrays for k in PLACES]
    total = expr(0)
    for each in reads:
        total = fn("add", total, element("X", each))
    names = named_integers.named_integers((total,), lambda _: True)
    assert len(set(names.values())) == len(names) == len(reads)
    taken = {*folds.bound_variables(total, 400), Symbol("~fold0", "fresh", 0), Symbol("~part0", "fresh", 0)}
    assert not {symbol for each in names.values() for symbol in symbols(each)} & taken
