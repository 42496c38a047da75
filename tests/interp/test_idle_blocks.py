"""Blocks without a tile: one is run for all of them, and reports stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from argus.core.ir import Kernel
from argus.interp.machine import idle_blocks
from argus.interp.run import run
from argus.interp.state import Launch
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    assert_written_once,
    block_id,
    copy,
    f32,
    kernel,
    load,
    loop,
    role,
    sm_90a,
    spread,
    tag,
    warps,
)

Groups = Iterator[list[tuple[int, ...]]]
SIZES = {"M": 130, "N": 24, "K": 72}


def all_of(_: Launch, groups: Groups) -> Groups:
    return groups


def groups_run(kernel: Kernel, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many groups of blocks a run takes."""
    seen: list[object] = []
    every = idle_blocks.without_repeats

    def counted(launch: Launch, found: Groups) -> Groups:
        for each in every(launch, found):
            seen.append(each)
            yield each

    monkeypatch.setattr(idle_blocks, "without_repeats", counted)
    run(kernel, sizes)
    return len(seen)


@pytest.mark.share(3)
@pytest.mark.parametrize(("config", "tiles"), [("small", 2), ("columns_64", 2), ("pingpong", 3)])
def test_one_block_without_a_tile_is_run_for_all(config: str, tiles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert groups_run(gemm.trace(config), SIZES, monkeypatch) == tiles + 1


def test_blocks_that_store_outside_of_loops_are_all_run(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel(target=sm_90a, threads=32)
    def copied(X: Tensor["B 32", f32], Y: Tensor["B 32", f32]) -> None:
        tag(X, lambda b, i: dict(b=b, i=i))
        (b,) = block_id((X.shape[0],))
        with role("all", warps(0)):
            for _ in loop(b):
                pass
            copy(load(X[b], spread((32,), threads=32, vector=1)), Y[b])
        assert_written_once(Y, lambda b, i: dict(b=b, i=i))

    assert groups_run(copied.trace(), {"B": 5}, monkeypatch) == 5


@pytest.mark.share(4)
@pytest.mark.parametrize("config", ["small", "columns_128"])
def test_numbers_and_findings_are_those_of_all_blocks(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = gemm.trace(config)
    few = run(traced, SIZES)
    monkeypatch.setattr(idle_blocks, "without_repeats", all_of)
    every = run(traced, SIZES)

    assert few.violations == every.violations == ()
    assert np.array_equal(few.arrays["C"], every.arrays["C"])
