"""Places of extrema and truth values as integers: proved where f32 and the integers have them, and not otherwise."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
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
    e4m3,
    f16,
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
    program,
    registers,
    sm_90a,
    spread,
    where,
    workspace,
)
from argus.verifier.api import verify
from argus.verifier.program import verify_program

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


@pytest.mark.share(8)
@pytest.mark.parametrize(("case", "proved"), CASES, ids=str)
def test_places_are_proved_where_no_integer_is_lost(case: tuple[DType, float, int, int, DType], proved: bool) -> None:
    assert is_proved(in_registers(*case)) is proved


@kernel(target=sm_90a, threads=64)
def choose(X: Tensor["M", f32], T: Tensor["M", bf16]) -> None:  # noqa: UP037 reason: a size
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    v = load(X.tile((64,), (m,)), BY, edge=0)
    copy(where(v > 0, 1001.0, 0.0).to(bf16), T.tile((64,), (m,)), edge=0)


@kernel(target=sm_90a, threads=64)
def convert(T: Tensor["M", bf16], I: Tensor["M", i32]) -> None:  # noqa: E741, UP037 reason: as above
    (m,) = block_id((ceil_div(T.shape[0], 64),))
    copy(load(T.tile((64,), (m,)), BY, edge=0).to(f32).to(i32), I.tile((64,), (m,)), edge=0)


@program
def through_memory(X: Tensor["M", f32], I: Tensor["M", i32]) -> None:  # noqa: E741, UP037 reason: as above
    between = workspace(bf16, X.shape)
    choose(X, between)
    convert(between, I)
    assert_equals(I, lambda n: where(X[n] > 0, 1001, 0))


def test_integers_that_an_earlier_launch_rounds() -> None:
    found = verify_program(through_memory, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert isinstance(found, Unknown)
    assert "to i32" in found.reason


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


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("narrow", "most", "proved"),
    [(bf16, 256, True), (bf16, 257, False), (f16, 1 << 11, True), (f16, (1 << 11) + 1, False), (e4m3, 17, False)],
    ids=str,
)
@pytest.mark.parametrize("reduced", [True, False])
def test_integers_that_pass_through_a_narrower_type(narrow: DType, most: int, proved: bool, reduced: bool) -> None:
    """bf16 rounds 257 to 256, which no conversion to f32 gives back."""

    def places(X: Tensor, I: Tensor) -> None:  # noqa: E741 reason: tensors
        rows, count = X.shape
        assume(count >= 1, count <= most)
        (m,) = block_id((ceil_div(rows, 64),))
        best, at = registers(f32, BY), registers(f32, BY)
        best[:], at[:] = -inf, inf
        for i in loop(count):
            best[:] = maximum(best, load(X.T[i].tile((64,), (m,)), BY, edge=0))
        for i in loop(count):
            at[:] = minimum(at, where(load(X.T[i].tile((64,), (m,)), BY, edge=0) == best, i, inf))
        copy(at.to(narrow).to(f32).to(i32), I.tile((64,), (m,)), edge=0)
        assert_equals(I, lambda r: argmax(lambda j: X[r, j], over=count))

    def chosen(X: Tensor, I: Tensor) -> None:  # noqa: E741 reason: tensors
        rows, count = X.shape
        assume(count >= 1)
        (m,) = block_id((ceil_div(rows, 64),))
        v = load(X.T[0].tile((64,), (m,)), BY, edge=0)
        copy(where(v > 0, float(most), 0.0).to(narrow).to(f32).to(i32), I.tile((64,), (m,)), edge=0)
        assert_equals(I, lambda r: where(X[r, 0] > 0, most, 0))

    made = places if reduced else chosen
    made.__annotations__ = {"X": Tensor["M N", f32], "I": Tensor["M", i32]}
    assert is_proved(kernel(target=sm_90a, threads=64)(made).trace()) is proved


def test_a_place_in_registers_of_a_narrower_type_is_rounded() -> None:
    def places(X: Tensor, I: Tensor) -> None:  # noqa: E741 reason: tensors
        (count,) = X.shape
        assume(count <= 1 << 20)
        (m,) = block_id((ceil_div(count, 64),))
        v = load(X.tile((64,), (m,)), BY, edge=0)
        place = registers(bf16, BY)
        place[:] = m * 64 + v.index[0]
        copy(where(v > 0, place.to(f32), 0.0).to(i32), I.tile((64,), (m,)), edge=0)
        assert_equals(I, lambda n: where(X[n] > 0, n, 0))

    places.__annotations__ = {"X": Tensor["M", f32], "I": Tensor["M", i32]}
    assert not is_proved(kernel(target=sm_90a, threads=64)(places).trace())


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "function",
    [lambda v: where(v > 0, 1.5, 0.0), lambda v: where(v > 0, 200.0, 0.0), lambda v: v * 0.5],
    ids=["a fraction", "beyond the type", "computed"],
)
def test_what_a_conversion_changes_is_not_proved(function: Callable[[Fragment], Fragment]) -> None:
    assert not is_proved(extremum(function, function))
