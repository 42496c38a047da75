"""Modules in training under `torch.compile(backend="argus")`: buffers that they change, and numbers of sizes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch

from argus.core import algebra
from argus.nests.nest import Apply, Coordinate, size
from argus.torch.backend import argus_backend
from argus.torch.report import clear_report, report
from argus.torch.sizes import fraction_of, of_sizes
from tests.torch.operands import TORCH, normal


@pytest.mark.nightly
def test_running_statistics_are_written_back() -> None:
    module: Any = torch.nn.BatchNorm1d(16)
    other: Any = deepcopy(module)
    TORCH._dynamo.reset()
    clear_report()
    compiled = TORCH.compile(module, backend=argus_backend, fullgraph=True)
    for seed in range(2):
        x = normal(32, 16, dtype=torch.float32, seed=seed)
        with torch.no_grad():
            assert torch.allclose(compiled(x), other(x), atol=1e-6)
        for (name, mine), (_, theirs) in zip(module.named_buffers(), other.named_buffers(), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-6), name
    assert int(module.num_batches_tracked) == 2
    entry = report()[-1]
    assert len(entry.kernels) == 4
    assert not entry.eager


def test_numbers_of_sizes_are_expressions_of_them() -> None:
    sizes = TORCH.fx.experimental.symbolic_shapes.ShapeEnv()
    batch = TORCH.empty(7, 3, device="meta")
    with TORCH._subclasses.FakeTensorMode(shape_env=sizes) as mode:
        fake = mode.from_tensor(batch, symbolic_context=None)
        count = fake.shape[0]
        found = fraction_of(count / (count - 1.0))
    n = size(str(count.node.expr))
    assert found == Apply("div", (Coordinate(n), Coordinate(algebra.sub(n, 1))))
    assert of_sizes(found, {str(count.node.expr): 5}) == 1.25
