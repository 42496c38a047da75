"""Kernels that assume that TMA refills a stage after its ordinary reads (reads-before-refill)."""

from __future__ import annotations

import pytest

from argus.core.ir import Fence, Kernel, One
from argus.core.proof.applicability import machine_assumptions
from argus.core.proof.sync.war_fences import has_unfenced_refills
from argus.verifier.loader import load
from tests.core.proof.rings import edited, every, of_role

PROVED = "tests/corpus/proved"


def traced(name: str) -> Kernel:
    (kernel,) = load(f"{PROVED}/{name}.py")
    return kernel.trace()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ordinary_reads_of_slots", True),
        ("ordinary_reads_fenced", False),
        ("slabs_by_ordinary_copies", False),
        ("one_slot", False),
        ("double_buffer", False),
    ],
)
def test_refills_after_ordinary_reads_need_an_assumption_unless_fenced(name: str, expected: bool) -> None:
    kernel = traced(name)
    assert has_unfenced_refills(kernel) is expected
    assert any("reads-before-refill" in each for each in machine_assumptions(kernel)) is expected


def test_a_fence_of_one_thread_or_after_the_release_fences_nothing() -> None:
    kernel = traced("ordinary_reads_fenced")
    (fence,) = [stmt for stmt in every(kernel, Fence) if stmt.kind == "async_proxy"]
    (release,) = of_role(kernel, "store", One)

    assert has_unfenced_refills(edited(kernel, fence))
    assert has_unfenced_refills(edited(kernel, fence, One((fence,))))
    assert has_unfenced_refills(edited(edited(kernel, fence), release, release, fence))
