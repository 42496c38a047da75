"""Convolutions in compiled graphs: programs on matrix units where channels are many, other templates where not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import argus.torch
from argus.kernels.nests import convolution_costs
from argus.nests import work
from argus.torch import choice_of_products
from argus.torch.backend import argus_backend
from argus.torch.kernelbench.compare import without_tf32
from argus.torch.tables import convolutions as tables

TORCH: Any = torch
pytestmark = pytest.mark.share(12, among="compiled convolutions")


def compiled(module: torch.nn.Module, x: torch.Tensor) -> tuple[float, list[str], int]:
    """The largest difference to eager torch, the kernels, and how many operations eager torch ran."""
    TORCH._dynamo.reset()
    run: Any = torch.compile(module, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    with torch.no_grad():
        difference = (run(x) - module(x)).abs().max().item()
    report = argus.torch.report()[-1]
    return difference, [each.name.partition("_")[0] for each in report.kernels], len(report.eager)


@pytest.fixture
def on_matrix_units(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As of large tensors, in single precision: small ones are summed by FMAs."""
    monkeypatch.setattr(convolution_costs, "is_for_matrix_units", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with without_tf32():
        yield


@pytest.mark.usefixtures("on_matrix_units")
@pytest.mark.parametrize("shape", [(2, 40, 20), (1, 40, 20), (2, 40, 3)], ids=["several", "one image", "one place"])
def test_many_channels_are_multiplied_by_matrix_units(shape: tuple[int, ...]) -> None:
    layers = torch.nn.Sequential(torch.nn.Conv1d(40, 6, 3, padding=int(shape[-1] > 3)), torch.nn.ReLU())

    difference, kernels, eager = compiled(layers, torch.rand(*shape))

    assert difference < 2e-6
    assert (kernels, eager) == (["convolutions"], 0)


def test_few_products_are_summed_by_a_thread() -> None:
    layers = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, groups=4), torch.nn.ReLU())

    difference, kernels, eager = compiled(layers, torch.rand(2, 4, 6, 7))

    assert difference < 2e-6
    assert (kernels, eager) == (["windows"], 0)


@pytest.mark.parametrize(
    ("layer", "images", "kernel"),
    [
        (torch.nn.Conv2d(1, 8, 1), 2, "reductions"),
        (torch.nn.Conv2d(8, 1, 1), 2, "reductions"),
        (torch.nn.Conv2d(1, 8, 3, padding=1), 1, "windows"),
        (torch.nn.Conv2d(12, 1, 3, padding=1), 1, "direct"),
        (torch.nn.Conv2d(12, 8, 3, padding=1), 1, "direct"),
    ],
    ids=["one channel", "one filter", "few products of one channel", "one filter and image", "one image"],
)
def test_one_image_channel_or_filter_has_a_kernel(layer: torch.nn.Conv2d, images: int, kernel: str) -> None:
    difference, kernels, eager = compiled(layer, torch.rand(images, layer.in_channels, 5, 6))

    assert difference < 2e-6
    assert (kernels[0], eager) == (kernel, 0)


@pytest.mark.nightly
@pytest.mark.usefixtures("on_matrix_units")
def test_a_transposed_one_with_steps_is_multiplied_by_matrix_units() -> None:
    difference, kernels, eager = compiled(torch.nn.ConvTranspose1d(40, 6, 3, stride=2), torch.rand(2, 40, 20))

    assert difference < 2e-6
    assert (kernels[0], eager) == ("convolutions", 0)


def test_groups_are_summed_by_threads() -> None:
    layers = torch.nn.Conv2d(6, 8, 3, padding=1, groups=2, bias=False)

    difference, kernels, eager = compiled(layers, torch.rand(1, 6, 7, 8))

    assert difference < 2e-6
    assert (kernels, eager) == (["direct"], 0)


@pytest.mark.parametrize(
    ("layer", "shape", "first"),
    [
        (torch.nn.Conv2d(3, 8, 4, 4), (2, 3, 8, 8), ["pointwise"]),
        (torch.nn.Conv2d(4, 8, 3, 2, 1), (2, 4, 9, 7), ["pointwise"]),
        (torch.nn.Conv2d(4, 8, 1), (2, 4, 5, 7), []),
        (torch.nn.Conv2d(4, 8, 1, 2), (2, 4, 5, 7), ["pointwise"]),
        (torch.nn.Conv1d(4, 8, 3, 1, 2, 2), (2, 4, 11), ["pointwise"]),
    ],
    ids=["patches", "windows", "points", "every second point", "gaps"],
)
def test_windows_in_memory_are_multiplied_by_filters(
    monkeypatch: pytest.MonkeyPatch, layer: torch.nn.Module, shape: tuple[int, ...], first: list[str]
) -> None:
    """As of large tensors: a product of matrices, which computes what follows, of inputs or of copies of windows."""
    monkeypatch.setattr(tables, "is_product", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(choice_of_products, "LARGE", 1)
    for name in ("_MANY", "_EACH"):
        monkeypatch.setattr(work, name, 0)

    difference, kernels, eager = compiled(torch.nn.Sequential(layer, torch.nn.ReLU()), torch.rand(*shape))

    assert difference < 2e-6
    assert (kernels, eager) == ([*first, "products"], 0)


class _Added(torch.nn.Module):
    """A convolution, and its input added to it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Conv1d(40, 40, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + x


@pytest.mark.nightly
@pytest.mark.usefixtures("on_matrix_units")
@pytest.mark.parametrize("images", [2, 1])
def test_a_residual_is_added_before_sums_are_stored(images: int) -> None:
    difference, kernels, eager = compiled(_Added(), torch.rand(images, 40, 20))

    assert difference < 2e-6
    assert (kernels, eager) == (["convolutions"], 0)
