"""A choice has the type of its values, whatever is compared."""

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError
from argus.language import Tensor, f32, i32, kernel, load, sm_90a, spread, where

BY = spread((8, 16), threads=32, vector=1)


def test_integers_are_chosen_by_a_test_of_floats() -> None:
    @kernel(target=sm_90a, threads=32)
    def chosen(X: Tensor["8 16", f32], I: Tensor["8 16", i32]) -> None:  # noqa: E741 reason: a tensor
        x, i = load(X, BY), load(I, BY)
        assert where(x < 0.5, i, 7).dtype == i32
        assert where(x < 0.5, 1.0, 0.0).dtype == f32
        assert where((x < 0.5) & (i == 3), x, 0.0).dtype == f32

    chosen.trace()


def test_both_values_have_one_type() -> None:
    @kernel(target=sm_90a, threads=32)
    def mixed(X: Tensor["8 16", f32], I: Tensor["8 16", i32]) -> None:  # noqa: E741 reason: a tensor
        x, i = load(X, BY), load(I, BY)
        where(x < 0.5, i, x)

    with pytest.raises(ArgusError, match="E106: `where` combines i32 and f32"):
        mixed.trace()
