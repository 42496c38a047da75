"""Products with what follows them, of KernelBench's second level at reduced sizes, on tensors of the CPU."""

# The numbers are those of the benchmark's problems. Functions of torch, which is untyped:
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportPrivateUsage=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 reason: torch's own name for it

from tests.torch.problems import drawn, is_proved_and_right

GIVEN = drawn((6, 40), (24, 40), (24,))
"""Rows, weights and a bias."""


def logarithm_of_sums(x: Any, w: Any, b: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = torch.logsumexp(torch.clamp(F.linear(x, w, b) * 4.0, -10.0, 10.0), dim=1, keepdim=True)
    return y * F.mish(y)


def with_residual(x: Any, w: Any, b: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = F.linear(x, w, b)
    return torch.sigmoid(y) * 2.0 + y


def less_the_mean(x: Any, w: Any, b: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = torch.max(F.linear(x, w, b), dim=1, keepdim=True).values
    return F.gelu(y - y.mean(dim=1, keepdim=True))


CASES: dict[str, Callable[..., Any]] = {
    "9 subtract, multiply, relu": lambda x, w, b: F.relu((F.linear(x, w, b) - 2.0) * 1.5),
    "12 multiply, leaky relu": lambda x, w, b: F.leaky_relu(F.linear(x, w, b) * 2.0, 0.1),
    "14 divide, sum, scale": lambda x, w, _: torch.sum(x @ w.T / 2, dim=1, keepdim=True) * 1.5,
    "22 scale, clamp, logarithm of sums, mish": logarithm_of_sums,
    "29 mish twice": lambda x, w, b: F.mish(F.mish(F.linear(x, w, b))),
    "53 scale, hardtanh, gelu": lambda x, w, b: F.gelu(F.hardtanh(F.linear(x, w, b) * 0.5, -2.0, 2.0)),
    "56 sigmoid, sum": lambda x, w, b: torch.sum(torch.sigmoid(F.linear(x, w, b)), dim=1, keepdim=True),
    "59 swish, scale": lambda x, w, b: F.silu(F.linear(x, w, b)) * 2.0,
    "63 relu, divide": lambda x, w, b: torch.relu(F.linear(x, w, b)) / 2.0,
    "70 sigmoid, scale, residual": with_residual,
    "80 maximum, less the mean, gelu": less_the_mean,
    "86 divide, gelu": lambda x, w, b: F.gelu(F.linear(x, w, b) / 10.0),
    "95 add, swish, tanh, gelu, hardtanh": lambda x, w, b: F.hardtanh(
        F.gelu(torch.tanh(F.silu(F.linear(x, w, b) + 0.5))), -1.0, 1.0
    ),
    "99 gelu, softmax": lambda x, w, b: F.softmax(F.gelu(F.linear(x, w, b)), dim=1),
}
IN_DEFAULT = {"63 relu, divide", "86 divide, gelu"}


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name", [name if name in IN_DEFAULT else pytest.param(name, marks=pytest.mark.nightly) for name in CASES]
)
def test_a_problem_is_proved_kernels_alone_and_right(name: str) -> None:
    is_proved_and_right(CASES[name], GIVEN)
