"""torch's tensors on the CPU: kernels count as proved (tests/kernels proves them), and the interpreter runs them."""

from __future__ import annotations

import pytest

from argus.ops import call_path
from argus.runtime import launch_gate
from tests.ops.fake_torch import verified_as


@pytest.fixture(autouse=True)
def _proved(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("verify_cached", "verify_program_cached"):
        monkeypatch.setattr(launch_gate, name, verified_as("proved"))
    call_path.load_candidate.cache_clear()
