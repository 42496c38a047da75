"""Pooling in graphs: one kernel by each thread's windows, where windows tile the tensor and where they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 reason: torch's own name for it

from argus.torch.backend import argus_backend
from argus.torch.report import clear_report, report
from tests.torch.operands import TORCH, normal

Function = Callable[[Any], Any]
CASES: dict[str, tuple[Function, tuple[int, ...], str]] = {
    "maximum of tiles": (lambda x: F.max_pool2d(x, 2), (2, 3, 8, 12), "windows"),
    "mean of tiles": (lambda x: F.avg_pool2d(x, 2), (2, 3, 8, 12), "windows"),
    "maximum of blocks": (lambda x: F.max_pool3d(x, 2), (2, 3, 4, 6, 8), "windows"),
    "maximum of blocks with a rest": (lambda x: F.max_pool3d(x, 2), (2, 3, 5, 7, 9), "windows"),
    "mean of blocks with a rest": (lambda x: F.avg_pool3d(x, 3), (2, 3, 7, 7, 8), "windows"),
    "maximum beyond the end": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (2, 3, 8, 10), "windows"),
    "maximum of padded windows beyond the end": (
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        (2, 3, 8, 9),
        "windows",
    ),
    "means of as many windows as wanted": (lambda x: F.adaptive_avg_pool2d(x, (4, 2)), (2, 3, 8, 10), "windows"),
    "mean of long runs with a rest": (lambda x: F.avg_pool1d(x, 520), (2, 3, 1058), "reductions"),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", CASES)
def test_windows_are_reduced_by_one_kernel(name: str) -> None:
    function, shape, family = CASES[name]
    x = normal(*shape, dtype=torch.float32)
    TORCH.compiler.reset()
    clear_report()

    found = TORCH.compile(function, backend=argus_backend)(x)

    assert torch.allclose(found, function(x), atol=1e-6)
    (entry,) = report()
    assert [each.name.rpartition("_")[0] for each in entry.kernels] == [family]
    assert not entry.eager
