"""Products in compiled graphs: what follows them is computed with their sums, by one kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import argus.torch
from argus.nests import work
from argus.torch import choice_of_products, planner
from argus.torch.backend import argus_backend

F: Any = functional
pytestmark = pytest.mark.share(4, among="products in graphs")


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


def test_work_that_is_not_proved_leaves_a_product_to_its_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not product and work to one that reads operands again for each element."""
    for name in ("_MANY", "_EACH"):  # as of products that are for matrix units
        monkeypatch.setattr(work, name, 0)
    monkeypatch.setattr(planner, "_PROOFS", {})
    monkeypatch.setattr(planner, "NOT_PROVED", set[tuple[str, str]]())
    real: Any = planner._proof  # pyright: ignore[reportPrivateUsage]  # the one place where kernels are proved

    def proof(candidate: Any, form: Any, budget: Any) -> Any:  # noqa: ANN401 reason: of the planner
        with_work = candidate.family.startswith("products") and len(form.parameters) > len(("x", "w", "y"))
        return "unknown" if with_work else real(candidate, form, budget)

    monkeypatch.setattr(planner, "_proof", proof)
    x, w, b = torch.randn(20, 40), torch.randn(24, 40), torch.randn(24)

    def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return torch.exp(F.linear(x, w, b))

    run: Any = torch.compile(layer, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    assert torch.allclose(run(x, w, b), layer(x, w, b), rtol=1e-4)
    assert [each.name.partition("_")[0] for each in argus.torch.report()[-1].kernels] == ["products", "pointwise"]


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


@pytest.mark.nightly
def test_an_operand_is_copied_as_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads of keys, which attention multiplies by as columns, are copied in rows: neighbours there are neighbours."""
    for name in ("_MANY", "_EACH"):  # as of products that are for matrix units
        monkeypatch.setattr(work, name, 0)
    x, bias = torch.randn(40, 48), torch.randn(48)

    def scores(x: Tensor, bias: Tensor) -> Tensor:
        heads = (x + bias).view(2, 20, 2, 3, 8).permute(2, 0, 3, 1, 4)
        return heads[0] @ heads[1].transpose(-1, -2)

    run: Any = torch.compile(scores, backend=argus_backend)  # pyright: ignore[reportUnknownMemberType]  # torch's
    assert torch.allclose(run(x, bias), scores(x, bias), atol=1e-5)
    product = argus.torch.report()[-1].kernels[-1]
    assert product.name.startswith("products")
    assert "X1[i0, i2, j0]" in product.nests
