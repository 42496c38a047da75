"""What graphs make of the sums of convolutions by FMAs: computed before they are stored, where that reads no tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import argus.torch
from argus.kernels.nests import convolution_costs
from argus.torch.backend import argus_backend

TORCH: Any = torch
pytestmark = pytest.mark.share(12, among="compiled work on direct convolutions")


class Worked(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module, work: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.work = layer, work

    def forward(self, x: torch.Tensor, *beside: torch.Tensor) -> torch.Tensor:
        return self.work(self.layer(x), *beside)


def compiled(layer: torch.nn.Module, work: Callable[..., Any], *given: torch.Tensor) -> tuple[float, list[str]]:
    """The largest difference to eager torch, and the kernels."""
    TORCH._dynamo.reset()
    module = Worked(layer, work)
    run: Any = torch.compile(module, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    with torch.no_grad():
        difference = (run(*given) - module(*given)).abs().max().item()
    report = argus.torch.report()[-1]
    assert not report.eager
    assert not report.failed
    return difference, [each.name.partition("_")[0] for each in report.kernels]


def mish_and_a_factor(x: torch.Tensor) -> torch.Tensor:
    return functional.mish(functional.mish(x)) * 2.0


def a_residual(x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
    return functional.relu(x + beside)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (torch.nn.Conv1d(5, 6, 3), (2, 5, 20)),
        (torch.nn.Conv2d(3, 8, 3, padding=1), (2, 3, 9, 10)),
        (torch.nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1), (2, 3, 5, 6)),
    ],
    ids=["one axis", "two axes", "transposed with steps"],
)
def test_one_kernel_computes_it(layer: torch.nn.Module, shape: tuple[int, ...]) -> None:
    difference, kernels = compiled(layer, mish_and_a_factor, torch.rand(*shape))

    assert difference < 2e-6
    assert kernels == ["direct"]


def test_a_tensor_with_an_element_for_each_place_is_read_by_a_kernel_of_its_own() -> None:
    """Registers are for the sums."""
    layer, x, beside = torch.nn.Conv2d(12, 8, 3, padding=1), torch.rand(2, 12, 6, 6), torch.rand(2, 8, 6, 6)

    difference, kernels = compiled(layer, a_residual, x, beside)

    assert difference < 2e-6
    assert kernels == ["direct", "pointwise"]


@pytest.mark.parametrize(
    ("work", "kernels"),
    [(functional.silu, ["convolutions"]), (mish_and_a_factor, ["convolutions", "pointwise"])],
    ids=["little work", "much work"],
)
def test_a_convolution_for_matrix_units_stays_there(
    work: Callable[..., Any], kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_costs, "is_for_matrix_units", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    difference, found = compiled(torch.nn.Conv1d(40, 6, 3), work, torch.rand(2, 40, 20))

    assert difference < 2e-5
    assert found == kernels


@pytest.mark.parametrize(
    ("work", "kernels"),
    [(torch.tanh, ["convolutions"]), (mish_and_a_factor, ["convolutions", "pointwise"])],
    ids=["little work", "much work"],
)
def test_all_classes_of_a_transposed_convolution_are_in_a_tile_with_little_work(
    work: Callable[..., Any], kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_costs, "is_for_matrix_units", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    layer = torch.nn.ConvTranspose2d(16, 6, 3, stride=2, padding=1, output_padding=1)

    difference, found = compiled(layer, work, torch.rand(2, 16, 5, 6))

    assert difference < 2e-5
    assert found == kernels
