"""Copies of parts of a register tile: registers that lie apart, in the order in which memory has their elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.emit.hip.text import hip_text
from argus.verifier.loader import load
from property_tests.programs import CORPUS
from tests.emit import host


@pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
def test_rows_of_a_tile_that_is_held_by_columns(tmp_path: Path) -> None:
    (exported,) = load(str(CORPUS / "proved" / "rows_stored_one_by_one.py"))
    kernel = exported.trace()
    x = np.arange(12 * 256, dtype=np.float32).reshape(12, 256)
    y = np.zeros_like(x)
    host.run_kernel(kernel, (x, y), {"R": 12}, tmp_path)
    np.testing.assert_array_equal(y, x)
    assert "store_b128" in hip_text(kernel)
