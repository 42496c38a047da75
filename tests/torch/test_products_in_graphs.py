"""Products in compiled graphs: what follows them is computed with their sums, by one kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import argus.torch
from argus.nests import work
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


@pytest.mark.nightly
def test_an_operand_whose_axis_has_several_strides_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MANY", "_EACH"):  # as of products that are for matrix units
        monkeypatch.setattr(work, name, 0)
    heads, w = torch.randn(2, 3, 20, 8), torch.randn(40, 24)

    def joined(heads: Tensor, w: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(40, 24) @ w.t()

    def flat(x: Tensor, w: Tensor) -> Tensor:
        return x.reshape(40, 24) @ w.t()

    for of, given, kinds in ((joined, heads, ["pointwise", "products"]), (flat, torch.randn(2, 20, 24), ["products"])):
        run: Any = torch.compile(of, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
        assert torch.allclose(run(given, w), of(given, w), atol=1e-5)
        assert [each.name.partition("_")[0] for each in argus.torch.report()[-1].kernels] == kinds
