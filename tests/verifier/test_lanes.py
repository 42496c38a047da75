"""Lane shuffles, and copies by one lane: verified, interpreted and emitted."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

import numpy as np
import pytest

from argus.core.ir import Kernel
from argus.core.target import Target
from argus.core.verdict import Proved
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_text
from argus.interp.interpret import interpret
from argus.interp.run import run
from argus.language import (
    Tensor,
    copy,
    f32,
    first_lane,
    gfx942,
    kernel,
    last_lane,
    lds,
    load,
    shared,
    sm_90a,
    spread,
    sync,
    vmem,
)
from argus.verifier.kernel import verify

pytestmark = pytest.mark.share(3, among="verifier: lanes")

targets = pytest.mark.parametrize("target", [gfx942, sm_90a], ids=str)


def text_of(made: Kernel) -> str:
    return cuda_text(made).text if made.target.name == "sm_90a" else hip_text(made)


def shifted(target: Target) -> Kernel:
    @kernel(target=target, threads=128)
    def shift(A: Tensor["128", f32], B: Tensor["128", f32]) -> None:
        x = load(A, spread((128,), threads=128, vector=1))
        if target == gfx942:
            vmem.wait(0)
        copy(x.shift(0, 1, fill=0.0), B)

    return shift.trace()


@targets
def test_a_shift_between_lanes(target: Target) -> None:
    made = shifted(target)
    assert "own_lane - 1" in text_of(made)
    report = verify(made, solver="z3")
    assert isinstance(report.verdict, Proved)
    assert report.uncovered == ("B",)
    held = np.arange(128, dtype=np.float32)
    by_wave = held.reshape(-1, target.unit)
    expected = np.pad(by_wave[:, :-1], ((0, 0), (1, 0))).ravel()
    found = interpret(made, held, np.zeros_like(held))
    np.testing.assert_array_equal(found["B"], expected)


@targets
def test_a_copy_by_one_lane_is_not_emitted_as_one_by_all(target: Target) -> None:
    lane = target.unit - 1
    stores = [
        line for line in text_of(chosen(target, last=True)).splitlines() if "store_b32(" in line and "box" in line
    ]
    assert stores
    assert all(f"& {lane}) == {lane})" in line for line in stores)


def chosen(target: Target, *, last: bool) -> Kernel:
    """Per warp, what one of its lanes holds, through shared memory."""
    warps = 128 // target.unit

    @kernel(target=target, threads=128)
    def choose(A: Tensor["W", f32], B: Tensor["W", f32]) -> None:
        by = spread((128,), threads=128, vector=1).partial(0, target.unit)
        box = shared(f32, (warps,))
        x = load(A.tile((warps,), (0,)), by, edge=0)
        if target == gfx942:
            vmem.wait(0)
        copy(x, box, by=last_lane if last else first_lane)
        if target == gfx942:
            lds.wait(0)
        sync()
        y = load(box, by)
        if target == gfx942:
            lds.wait(0)
        copy(y, B.tile((warps,), (0,)), by=first_lane, edge=0)

    return choose.trace()


@targets
@pytest.mark.parametrize("last", [False, True])
def test_one_lane_of_each_warp_writes(target: Target, last: bool) -> None:
    made = chosen(target, last=last)
    warps = 128 // target.unit
    given = np.arange(1, warps + 1, dtype=np.float32)
    outcome = run(made, {"W": warps}, {"A": given})
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["B"], given)
    assert isinstance(verify(made, solver="z3").verdict, Proved)
