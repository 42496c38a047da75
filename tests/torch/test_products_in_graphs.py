"""Products in compiled graphs: what follows them is computed with their sums, by one kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import argus.torch
from argus.torch import choice_of_products
from argus.torch.backend import argus_backend

F: Any = functional
pytestmark = pytest.mark.share(2, among="products in graphs")


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of few elements, which other templates compute by themselves, are for this one, too."""
    monkeypatch.setattr(choice_of_products, "LARGE", 1)


def test_a_linear_layer_and_what_follows_it_is_one_kernel() -> None:
    x, w, b = torch.randn(20, 40), torch.randn(24, 40), torch.randn(24)

    def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.gelu(F.linear(x, w, b) / 6)

    run: Any = torch.compile(layer, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    found = run(x, w, b)

    assert torch.allclose(found.double(), layer(x.double(), w.double(), b.double()), atol=1e-5)
    report = argus.torch.report()[-1]
    assert [each.name.partition("_")[0] for each in report.kernels] == ["products"]
    assert (report.eager, report.operators) == ((), ())


def test_a_product_that_two_results_need_is_computed_once() -> None:
    x, w = torch.randn(20, 40), torch.randn(24, 40)

    def both(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        product = x @ w.t()
        return product.relu(), product.sigmoid()

    run: Any = torch.compile(both, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    found = run(x, w)

    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(found, both(x, w), strict=True))
    report = argus.torch.report()[-1]
    assert [each.name.partition("_")[0] for each in report.kernels] == ["products", "pointwise", "pointwise"]
