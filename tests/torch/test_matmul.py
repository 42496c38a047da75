"""`argus.matmul` on operands of any number of axes: what it computes, its gradients, and autocast."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import argus
from argus.core.diagnostic import ArgusError
from tests.torch.operands import TORCH, normal

SHAPES = [
    ((5,), (5,)),
    ((5,), (5, 3)),
    ((4, 5), (5,)),
    ((4, 5), (5, 3)),
    ((2, 4, 5), (5, 3)),
    ((4, 5), (2, 5, 3)),
    ((2, 3, 4, 5), (5,)),
    ((2, 3, 4, 5), (5, 3)),
    ((2, 3, 4, 5), (2, 3, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 3)),
    ((1, 4, 5), (2, 3, 5, 3)),
    ((5,), (2, 3, 5, 3)),
    ((2, 3, 4, 5), (3, 5, 3)),
    ((2, 0, 4, 5), (5, 3)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_operands_broadcast_and_have_gradients(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = normal(*a).requires_grad_(), normal(*b, seed=1).requires_grad_()
    exact_left, exact_right = (each.detach().double().requires_grad_() for each in (left, right))
    found: Any = argus.matmul(left, right)
    wanted: Any = torch.matmul(exact_left, exact_right)
    assert found.shape == wanted.shape
    given = normal(*wanted.shape, seed=2)
    found.backward(given)
    wanted.backward(given.double())
    for one, other in ((found, wanted), (left.grad, exact_left.grad), (right.grad, exact_right.grad)):
        assert one is not None
        assert other is not None
        assert one.shape == other.shape
        assert torch.allclose(one.double(), other, rtol=2**-7, atol=2**-6)


def test_gradients_have_gradients() -> None:
    a, b = normal(4, 8).requires_grad_(), normal(8, 3, seed=1).requires_grad_()
    (of_a,) = TORCH.autograd.grad(argus.matmul(a, b).sum(), a, create_graph=True)
    of_a.sum().backward()
    assert b.grad is not None
    assert torch.equal(b.grad, torch.full_like(b, 4))  # of the sum over rows of a, of what is 1 everywhere


def test_a_product_is_computed_without_a_graph_if_none_is_recorded() -> None:
    a, b = normal(4, 8).requires_grad_(), normal(8, 3, seed=1)
    with torch.no_grad():
        assert not argus.matmul(a, b).requires_grad


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ((), (5, 3), "`a` expects at least 1 axis"),
        ((4, 5), (4,), "`b` expects 5 rows"),
        ((2, 3, 4, 5), (2, 2, 5, 3), "the batch sizes must be equal, or one of them 1"),
    ],
)
def test_operands_that_do_not_broadcast_are_refused(a: tuple[int, ...], b: tuple[int, ...], words: str) -> None:
    with pytest.raises(ArgusError, match="E401") as refused:
        argus.matmul(normal(*a), normal(*b))
    assert words in refused.value.diagnostic.message
    with pytest.raises(ArgusError, match="E401"):
        torch.ops.argus.matmul(normal(*a).to("meta"), normal(*b).to("meta"))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_autocast_converts_what_torch_does(kind: torch.dtype) -> None:
    a, b = normal(4, 8, dtype=torch.float32).requires_grad_(), normal(8, 8, dtype=torch.bfloat16, seed=1)
    with torch.autocast("cpu", dtype=kind):
        product: Any = argus.matmul(a, b)
        assert (product.dtype, argus.softmax(product.detach()).dtype) == (kind, torch.float32)
        assert argus.row_mean(product.detach()).dtype == kind
    product.float().sum().backward()
    assert a.grad is not None
    assert a.grad.dtype == torch.float32
    with pytest.raises(ArgusError, match=r"and `b` of torch\.bfloat16"):
        argus.matmul(a.detach(), b)


@pytest.mark.share(3)
def test_products_of_f32_have_gradients() -> None:
    a, b = (normal(*shape, dtype=torch.float32, seed=seed) for seed, shape in enumerate(((2, 4, 8), (8, 6))))
    left, right = a.clone().requires_grad_(), b.clone().requires_grad_()
    found: Any = argus.matmul(left, right)
    found.sum().backward()
    assert left.grad is not None
    assert right.grad is not None
    wanted = a.double() @ b.double(), b.double().sum(1).expand(2, 4, 8), a.double().sum((0, 1))[:, None].expand(8, 6)
    for one, other in zip((found, left.grad, right.grad), wanted, strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-5, atol=1e-5)
