"""Reductions, norms, pooling, scans and losses of KernelBench's first level at reduced sizes, on tensors of the CPU."""

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

_EPS = 1e-5


IMAGES, MATRICES, ROWS = drawn((2, 8, 20, 24)), drawn((4, 33, 37)), drawn((6, 300))
PAIRS = drawn((20, 64), (20, 64))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "23 softmax": (lambda x: torch.softmax(x, 1), ROWS),
    "24 log softmax": (lambda x: torch.log_softmax(x, 1), ROWS),
    "33 batch norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, _EPS),
        (*IMAGES, *drawn((8,), (8,))),
    ),
    "34 instance norm": (F.instance_norm, IMAGES),
    "36 rms norm": (lambda x: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + _EPS), IMAGES),
    "37 frobenius norm": (lambda x: x / torch.norm(x, p="fro"), IMAGES),
    "38 l1 norm": (lambda x: x / torch.mean(torch.abs(x), dim=1, keepdim=True), drawn((5, 77))),
    "39 l2 norm": (lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True), drawn((5, 77))),
    "40 layer norm": (
        lambda x, w, b: F.layer_norm(x, (8, 20, 24), w, b),
        (*IMAGES, *drawn((8, 20, 24), (8, 20, 24))),
    ),
    "41 max pool 1": (lambda x: F.max_pool1d(x, 8, 1, 4, 3), drawn((2, 4, 100))),
    "42 max pool 2": (lambda x: F.max_pool2d(x, 4, 1, 1, 1), IMAGES),
    "43 max pool 3": (lambda x: F.max_pool3d(x, 3, 2, 1, 3), drawn((1, 2, 16, 17, 18))),
    "44 mean pool 1": (lambda x: F.avg_pool1d(x, 8, 1, 4), drawn((2, 4, 100))),
    "45 mean pool 2": (lambda x: F.avg_pool2d(x, 11, 11), drawn((2, 4, 40, 44))),
    "46 mean pool 3": (lambda x: F.avg_pool3d(x, 3, 2, 1), drawn((1, 2, 16, 17, 18))),
    "47 sum": (lambda x: torch.sum(x, dim=1, keepdim=True), MATRICES),
    "48 mean": (lambda x: torch.mean(x, dim=1), MATRICES),
    "49 max": (lambda x: torch.max(x, dim=1)[0], MATRICES),
    "51 argmax": (lambda x: torch.argmax(x, dim=1), MATRICES),
    "52 argmin": (lambda x: torch.argmin(x, dim=1), MATRICES),
    "53 min": (lambda x: torch.min(x, dim=1)[0], MATRICES),
    "89 cumsum": (lambda x: torch.cumsum(x, dim=1), ROWS),
    "90 cumprod": (lambda x: torch.cumprod(x, dim=1), tuple(x + 0.5 for x in drawn((4, 60)))),
    "91 cumsum, reversed": (lambda x: torch.cumsum(x.flip(1), dim=1).flip(1), ROWS),
    "92 cumsum, exclusive": (
        lambda x: torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), torch.cumsum(x[:, :-1], 1)), 1),
        ROWS,
    ),
    "94 squared error": (lambda x, z: torch.mean((x - z) ** 2), PAIRS),
    "96 huber": (F.smooth_l1_loss, PAIRS),
    "99 triplets": (lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=1.0), (*PAIRS, *drawn((20, 64)))),
    "100 hinge": (lambda x, z: torch.mean(torch.clamp(1 - x * z, min=0)), drawn((32, 64), (64,))),
}


IN_DEFAULT = {"23 softmax", "47 sum", "89 cumsum"}


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "name", [name if name in IN_DEFAULT else pytest.param(name, marks=pytest.mark.nightly) for name in CASES]
)
def test_a_problem_is_proved_kernels_alone_and_right(name: str) -> None:
    is_proved_and_right(*CASES[name])
