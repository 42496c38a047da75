"""Whole models with few layers, compiled: nothing is left to eager torch, and the error is about eager torch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import argus.torch
from benchmarks.models import SMALL

T: Any = torch


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    T.compiler.reset()
    argus.torch.clear_report()
    yield
    T.compiler.reset()


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SMALL)
def test_all_of_a_model_is_covered(name: str, dtype: torch.dtype) -> None:
    model, x = SMALL[name].made(dtype=dtype)
    with torch.no_grad():
        found = T.compile(model, backend="argus", fullgraph=True)(x)
        eager = model(x)
        exact = model.double()(x.double())
    scale = float(exact.abs().max())
    errors = [float((each - exact).abs().max()) / scale for each in (found, eager)]
    assert errors[0] <= max(1e-4, 2 * errors[1]), errors
    (entry,) = argus.torch.report()
    assert not entry.eager, entry.eager
