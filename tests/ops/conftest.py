"""The fixture `fake`: `argus.matmul` on a fake torch and driver, with kernels that count as proved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from argus.runtime import launch_gate
from argus.runtime.cuda import driver
from tests.ops.fake_torch import CUDA, Multiplying, matmul_module, verified_as


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Multiplying]:
    """torch, a driver, and kernels that count as proved."""
    made = Multiplying(pointers=3)
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=CUDA, is_grad_enabled=lambda: False, float32=np.float32)
    )
    monkeypatch.setattr(driver, "bindings", lambda: made.raw)
    monkeypatch.setattr(launch_gate, "verify_cached", verified_as("proved"))
    matmul_module.clear_cache()
    yield made
    matmul_module.clear_cache()
