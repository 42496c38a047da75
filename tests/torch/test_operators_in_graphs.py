"""Operators of Argus within graphs of `torch.compile(backend="argus")`: called as they are, and no fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import argus
from argus.torch.backend import argus_backend
from argus.torch.report import GraphEntry, clear_report, report
from tests.torch.operands import TORCH, normal


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    TORCH._dynamo.reset()
    clear_report()
    return TORCH.compile(function, backend=argus_backend, fullgraph=True, options={"fallback": "error"})


def last() -> GraphEntry:
    return report()[-1]


@pytest.mark.share(3)
def test_an_operator_is_called_between_kernels() -> None:
    a, b = normal(8, 64), normal(64, 16, seed=1)

    def layer(a: Any, b: Any) -> Any:  # noqa: ANN401 reason: torch's
        return torch.relu(argus.matmul(a, b))

    call = compiled(layer)
    assert torch.equal(call(a, b), torch.relu(argus.matmul(a, b)))
    assert last().operators == ("argus.matmul.default",)
    assert len(last().kernels) == 1
    assert "operator argus.matmul.default" in str(last())


@pytest.mark.share(3)
@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_that_of_argus_in_training_alone(*, training: bool) -> None:
    x = normal(4, 64, dtype=torch.float32)

    def dropped(x: Any) -> Any:  # noqa: ANN401 reason: torch's
        return functional.dropout(x + 1.0, 0.25, training), functional.dropout(x + 1.0, 0.25, training)

    call = compiled(dropped)
    given = x.clone().requires_grad_()
    TORCH.manual_seed(7)
    first, second = call(given)
    assert last().operators == (("argus.dropout_draw.default", "argus.dropout.default") * 2 if training else ())
    TORCH.manual_seed(7)
    wanted = [argus.dropout(x + 1.0, 0.25), argus.dropout(x + 1.0, 0.25)] if training else [x + 1.0, x + 1.0]
    assert torch.equal(first, wanted[0])
    assert torch.equal(second, wanted[1])
    first.sum().backward()
    assert given.grad is not None
    assert torch.equal(given.grad * (x + 1.0), wanted[0])
