"""Places of extrema and truth values as integers: proved where f32 and the integers have them, and not otherwise."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.language import (
    DType,
    Fragment,
    Tensor,
    argmax,
    assert_equals,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f32,
    greatest,
    i8,
    i32,
    i64,
    kernel,
    load,
    loop,
    maximum,
    minimum,
    registers,
    sm_90a,
    spread,
    where,
)
from argus.verifier.api import verify

BY = spread((64,), threads=64, vector=1)
NONE = 2147483647


def in_registers(dtype: DType, none: float, least_length: int, most: int, stored: DType) -> Kernel:
    """The lowest place of the greatest element, in registers of a type; none: what stands for no place."""

    def places(X: Tensor, I: Tensor) -> None:  # noqa: E741 reason: tensors
        rows, count = X.shape
        assume(count >= least_length, count <= most)
        (m,) = block_id((ceil_div(rows, 64),))
        best, at, place = registers(f32, BY), registers(dtype, BY), registers(dtype, BY)
        best[:], at[:] = -inf, none
        for i in loop(count):
            best[:] = maximum(best, load(X.T[i].tile((64,), (m,)), BY, edge=0))
        for i in loop(count):
            place[:] = i
            at[:] = minimum(at, where(load(X.T[i].tile((64,), (m,)), BY, edge=0) == best, place, none))
        copy(at.to(stored) if stored != dtype else at, I.tile((64,), (m,)), edge=0)
        assert_equals(I, lambda r: argmax(lambda j: X[r, j], over=count))

    places.__annotations__ = {"X": Tensor["M N", f32], "I": Tensor["M", stored]}
    return kernel(target=sm_90a, threads=64)(places).trace()


def is_proved(made: Kernel) -> bool:
    return isinstance(verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)


CASES = [
    ((i32, NONE, 1, 1 << 30, i32), True),
    ((i32, NONE, 1, 1 << 30, i64), True),
    ((i32, 1 << 20, 1, 1 << 20, i32), True),
    ((i32, 1 << 20, 1, (1 << 20) + 1, i32), False),
    ((i32, NONE, 0, 1 << 30, i32), False),
    ((f32, inf, 1, 1 << 24, i64), True),
    ((f32, inf, 1, (1 << 24) + 1, i64), False),
    ((f32, inf, 0, 1 << 24, i64), False),
    ((f32, inf, 1, 127, i8), True),
    ((f32, inf, 1, 1 << 24, i8), False),
    ((bf16, inf, 1, 100, i32), False),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("case", "proved"), CASES, ids=str)
def test_places_are_proved_where_no_integer_is_lost(case: tuple[DType, float, int, int, DType], proved: bool) -> None:
    assert is_proved(in_registers(*case)) is proved


def extremum(function: Callable[[Fragment], Fragment], claimed: Callable[[object], object]) -> Kernel:
    def reduced(X: Tensor, Y: Tensor) -> None:
        rows, count = X.shape
        assume(count >= 1)
        (m,) = block_id((ceil_div(rows, 64),))
        best = registers(f32, BY)
        best[:] = -inf
        for i in loop(count):
            best[:] = maximum(best, function(load(X.T[i].tile((64,), (m,)), BY, edge=0)))
        copy(best.to(i8), Y.tile((64,), (m,)), edge=0)
        assert_equals(Y, lambda r: greatest(lambda j: claimed(X[r, j]), over=count))

    reduced.__annotations__ = {"X": Tensor["M N", f32], "Y": Tensor["M", i8]}
    return kernel(target=sm_90a, threads=64)(reduced).trace()


def test_truth_values_are_proved() -> None:
    assert is_proved(extremum(lambda v: where(v > 0, 1.0, 0.0), lambda v: where(v > 0, 1, 0)))


@pytest.mark.parametrize(
    "function",
    [lambda v: where(v > 0, 1.5, 0.0), lambda v: where(v > 0, 200.0, 0.0), lambda v: v * 0.5],
    ids=["a fraction", "beyond the type", "computed"],
)
def test_what_a_conversion_changes_is_not_proved(function: Callable[[Fragment], Fragment]) -> None:
    assert not is_proved(extremum(function, function))
