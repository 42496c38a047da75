"""Convolutions of f32 are of as many products of parts as torch's flags of precision ask for."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import argus.torch
from argus.kernels.nests import convolution_costs
from argus.torch.backend import argus_backend
from argus.torch.kernelbench.compare import without_tf32
from argus.torch.precision import products_of_convolutions

pytestmark = pytest.mark.share(3, among="precision of convolutions")

TORCH: Any = torch


@pytest.fixture(autouse=True)
def flags_are_restored() -> Iterator[None]:
    before = TORCH.backends.cudnn.allow_tf32
    yield
    TORCH.backends.cudnn.allow_tf32 = before


@contextmanager
def with_tf32() -> Generator[None]:
    TORCH.backends.cudnn.allow_tf32 = True
    yield


def test_both_of_the_flags_of_torch_are_asked() -> None:
    with with_tf32():
        assert products_of_convolutions() == 3
    with without_tf32():
        assert products_of_convolutions() == 6
    TORCH.backends.cudnn.conv.fp32_precision = "ieee"
    assert products_of_convolutions() == 6
    TORCH.backends.cudnn.conv.fp32_precision = "tf32"
    assert products_of_convolutions() == 3


@pytest.mark.parametrize(
    ("flags", "products", "least", "most"), [(with_tf32, 3, 1e-7, 4e-5), (without_tf32, 6, 0, 2e-6)]
)
def test_a_convolution_keeps_as_many_bits(
    flags: Any,  # noqa: ANN401 reason: a context
    products: int,
    least: float,
    most: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """least, most: differences to float64, of sums of 120 products of numbers below 1 and 0.1."""
    monkeypatch.setattr(convolution_costs, "is_for_matrix_units", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    TORCH.manual_seed(0)
    layer, x = torch.nn.Conv1d(40, 6, 3), torch.rand(2, 40, 20)
    TORCH._dynamo.reset()
    run: Any = torch.compile(layer, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    with torch.no_grad(), flags():
        found = run(x)
        difference = float((found.double() - layer.double()(x.double())).abs().max())
    assert least < difference < most
    (kernel,) = argus.torch.report()[-1].kernels
    assert f"products{products}" in kernel.config
