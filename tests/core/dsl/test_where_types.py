"""A choice has the type of its values, whatever is compared."""

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError
from argus.language import (
    Tensor,
    copy,
    f32,
    i8,
    i32,
    i64,
    kernel,
    load,
    maximum,
    promise,
    scalar,
    sm_90a,
    spread,
    where,
)

BY = spread((8, 16), threads=32, vector=1)


def test_integers_are_chosen_by_a_test_of_floats() -> None:
    @kernel(target=sm_90a, threads=32)
    def chosen(X: Tensor["8 16", f32], I: Tensor["8 16", i32]) -> None:  # noqa: E741 reason: a tensor
        x, i = load(X, BY), load(I, BY)
        assert where(x < 0.5, i, 7).dtype == i32
        assert where(x < 0.5, 1.0, 0.0).dtype == f32
        assert where((x < 0.5) & (i == 3), x, 0.0).dtype == f32

    chosen.trace()


def test_numbers_have_the_type_that_is_given() -> None:
    @kernel(target=sm_90a, threads=32)
    def flags(X: Tensor["8 16", f32]) -> None:
        assert where(load(X, BY) < 0.5, 1, 0, dtype=i8).dtype == i8

    flags.trace()


def test_tiles_keep_their_type() -> None:
    @kernel(target=sm_90a, threads=32)
    def mixed(X: Tensor["8 16", f32]) -> None:
        x = load(X, BY)
        where(x < 0.5, x, 0, dtype=i8)

    with pytest.raises(ArgusError, match="E106: `where` of tiles has their type"):
        mixed.trace()


def test_integers_of_64_bits_have_no_extrema() -> None:
    @kernel(target=sm_90a, threads=32)
    def clamped(I: Tensor["8 16", i64]) -> None:  # noqa: E741 reason: a tensor
        copy(maximum(load(I, BY), 2), I)

    with pytest.raises(ArgusError, match="E106: `max` of i64, which is added, subtracted and multiplied only"):
        clamped.trace()


def test_a_number_that_float64_rounds_is_refused() -> None:
    @kernel(target=sm_90a, threads=32)
    def raised(I: Tensor["8 16", i64]) -> None:  # noqa: E741 reason: a tensor
        copy(load(I, BY) + ((1 << 53) + 1), I)

    with pytest.raises(ArgusError, match="E106: the number 9007199254740993, which float64 rounds"):
        raised.trace()


def test_integers_of_64_bits_are_no_coordinates() -> None:
    @kernel(target=sm_90a, threads=32)
    def gathered(I: Tensor["8 16", i64]) -> None:  # noqa: E741 reason: a tensor
        scalar(I[0, 0])

    with pytest.raises(ArgusError, match="E501: integers of 64 bits"):
        gathered.trace()


def test_integers_of_64_bits_have_no_contract() -> None:
    @kernel(target=sm_90a, threads=32)
    def promised(I: Tensor["8 16", i64]) -> None:  # noqa: E741 reason: a tensor
        promise(I, lambda e: e < 3)

    with pytest.raises(ArgusError, match="E501: promises about integers of 64 bits"):
        promised.trace()


def test_both_values_have_one_type() -> None:
    @kernel(target=sm_90a, threads=32)
    def mixed(X: Tensor["8 16", f32], I: Tensor["8 16", i32]) -> None:  # noqa: E741 reason: a tensor
        x, i = load(X, BY), load(I, BY)
        where(x < 0.5, i, x)

    with pytest.raises(ArgusError, match="E106: `where` combines i32 and f32"):
        mixed.trace()
