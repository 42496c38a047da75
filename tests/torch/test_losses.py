"""torch's cross entropy in graphs: by `argus.cross_entropy`, and equal to torch's in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import argus.torch
from argus.torch.captured import cross_entropy

F: Any = functional
T: Any = torch


def operands(dtype: torch.dtype = torch.float32, ignored: int = -100) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(0)
    target = torch.randint(0, 64, (16,), generator=made)
    target[3:5] = ignored
    return 4 * torch.randn(16, 64, generator=made).to(dtype), target


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options", [{}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 7}, {"label_smoothing": 0.1}]
)
def test_it_is_torchs(options: dict[str, Any], dtype: torch.dtype) -> None:
    x, target = operands(dtype, options.get("ignore_index", -100))
    found = cross_entropy(x, target, **options)
    wanted = F.cross_entropy(x.double(), target, **options)
    assert found.dtype == dtype
    assert torch.allclose(found.double(), wanted, rtol=1e-6 if dtype == torch.float32 else 1e-2)


def test_a_gradient_is_torchs() -> None:
    x, target = operands()
    given, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    found: Any = cross_entropy(given, target)
    found.backward()
    F.cross_entropy(other, target).backward()
    assert torch.equal(given.grad, other.grad)  # pyright: ignore[reportArgumentType]  # both have one


@pytest.mark.nightly
def test_in_a_graph_nothing_is_left_to_eager_torch() -> None:
    T.compiler.reset()
    argus.torch.clear_report()
    x, target = operands()
    with torch.no_grad():
        found = T.compile(F.cross_entropy, backend="argus", fullgraph=True)(x, target)
    assert torch.allclose(found, F.cross_entropy(x, target), rtol=1e-6)
    (entry,) = argus.torch.report()
    assert not entry.eager
    assert entry.operators == ("argus.cross_entropy.default",)
