"""Edges of shared memory, sums in memory, and a scan across waves: HIP text executed beside NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.ir import View
from argus.core.layout import TV
from argus.emit import address
from argus.emit.scope import Scope
from argus.language import (
    Tensor,
    add,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    kernel,
    lds,
    load,
    shared,
    spread,
    sync,
    vmem,
)
from argus.verifier.loader import load as load_file
from property_tests.programs import CORPUS
from tests.emit import host

pytestmark = pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
Array = npt.NDArray[np.float32]


@kernel(target=gfx942, threads=64)
def widened(X: Tensor["R 30", f32], Y: Tensor["R 32", f32]) -> None:
    """A tile of 32 columns over shared rows of 30: what is written beyond them is dropped, what is read there is 5."""
    by = spread((16, 32), threads=64, vector=2)
    box = shared(f32, (17, 30))
    (m,) = block_id((ceil_div(X.shape[0], 16),))
    x = load(X.tile((16, 32), (m, 0)), by, edge=7)
    vmem.wait(0)
    copy(x, box.tile((16, 32), (0, 0)), edge=0)
    lds.wait(0)
    sync()
    y = load(box.tile((16, 32), (0, 0)), by, edge=5)
    lds.wait(0)
    copy(y, Y.tile((16, 32), (m, 0)), edge=0)


def widened_rows(work: Path) -> tuple[Array, Array]:
    x = np.arange(20 * 30, dtype=np.float32).reshape(20, 30)
    y = np.zeros((20, 32), np.float32)
    host.run_kernel(widened.trace(), (x, y), {"R": 20}, work)
    return y, np.concatenate([x, np.full((20, 2), 5, np.float32)], axis=1)


def test_what_lies_beyond_shared_rows(tmp_path: Path) -> None:
    found, wanted = widened_rows(tmp_path)
    np.testing.assert_array_equal(found, wanted)


def test_without_predicates_it_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation: shared memory has no edges."""

    def unguarded(
        _view: View, _by: TV, _scope: Scope, _values: tuple[int, ...], declared: address.Declared
    ) -> address.Declared:
        return declared

    monkeypatch.setattr(address, "_with_predicates", unguarded)
    found, wanted = widened_rows(tmp_path)
    assert (found != wanted).any()


@kernel(target=gfx942, threads=64)
def folded(X: Tensor["R 64", f32], Y: Tensor["16 64", f32]) -> None:
    """Each block adds 16 rows of X to Y."""
    by = spread((16, 64), threads=64, vector=4)
    (m,) = block_id((ceil_div(X.shape[0], 16),))
    x = load(X.tile((16, 64), (m, 0)), by, edge=0)
    vmem.wait(0)
    copy(x, Y, combine=add)


def test_blocks_add_to_memory(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (40, 64)).astype(np.float32)
    y = np.ones((16, 64), np.float32)
    host.run_kernel(folded.trace(), (x, y), {"R": 40}, tmp_path)
    padded = np.concatenate([x, np.zeros((8, 64), np.float32)])
    np.testing.assert_array_equal(y, 1 + padded.reshape(3, 16, 64).sum(axis=0))


def test_a_scan_across_waves(tmp_path: Path) -> None:
    """By registers, lanes, waves through shared memory, and chunks."""
    found = {each.name: each for each in load_file(str(CORPUS / "traced" / "scan.py"))}
    x = np.random.default_rng(1).integers(-9, 9, (3, 1000)).astype(np.float32)
    y = np.zeros_like(x)
    host.run_kernel(found["scan_cdna3"].trace(), (x, y), {"R": 3, "N": 1000}, tmp_path)
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1))
