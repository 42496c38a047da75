"""The search for a violating run: derived sizes, and the smallest failing size."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.core.walk import evaluate
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Schedule
from argus.interp.search.search import find, sizes_in_order
from argus.kernels.gemm import gemm as shipped
from argus.verifier.loader import load
from tests.interp.programs import gemm
from tests.verifier.switched_off_checks import load_edited

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


def test_sizes_satisfy_the_assumptions_and_grow() -> None:
    sizes = list(sizes_in_order(gemm()))
    assert sizes[0] == {"M": 1, "N": 1, "K": 4}
    assert len(sizes) <= 40
    assert all(size["K"] % 4 == 0 for size in sizes)
    assert {"M": 65, "N": 65, "K": 20} in sizes
    assert {"M": 1, "N": 1, "K": 48} in sizes
    assert sorted({size["M"] for size in sizes})[:3] == [1, 64, 65]


def test_extra_sizes_are_among_them_if_they_are_allowed() -> None:
    sizes = list(sizes_in_order(gemm(), extra=[{"M": 7, "N": 9, "K": 12}, {"M": 7, "N": 9, "K": 13}]))
    assert {"M": 7, "N": 9, "K": 12} in sizes
    assert {"M": 7, "N": 9, "K": 13} not in sizes


@pytest.mark.share(10)
@pytest.mark.parametrize(
    ("edit", "code", "smallest"),
    [
        ("B backwards", "I1", {"M": 1, "N": 1, "K": 20}),
        ("no edge", "I37", {"M": 1, "N": 1, "K": 4}),
        ("one row of tiles", "I4", {"M": 65, "N": 1, "K": 4}),
        ("no load wait", "I31", {"M": 1, "N": 1, "K": 4}),
        ("one buffer", "I36", {"M": 1, "N": 1, "K": 20}),
    ],
)
def test_the_smallest_failing_size_is_found(edit: str, code: str, smallest: dict[str, int]) -> None:
    twin = gemm(edit)
    witness = find(twin, lambda violation: violation.code == code, sizes_in_order(twin), DIRECTED)
    assert witness is not None
    assert dict(witness.sizes) == smallest
    replayed = run(twin, witness.sizes, schedule=witness.schedule, values=False)
    assert witness.violation in replayed.violations


@pytest.mark.share(20, among="correct kernels in the interpreter")
def test_nothing_is_found_in_a_correct_kernel() -> None:
    whole = shipped.trace()
    schedules = (DIRECTED[0], Schedule("mixed", 3))
    assert find(whole, lambda _: True, sizes_in_order(whole), schedules) is None


def test_a_size_that_an_assumption_divides_by_is_not_0() -> None:
    kernel = load_edited(
        "formula_integers_clamped",
        ("assert_equals, block_id", "assert_equals, assume, block_id"),
        ("    M, N = X.shape\n", "    M, N = X.shape\n    assume(64 // N < 128)\n"),
    ).trace()
    assert min(size["N"] for size in sizes_in_order(kernel)) == 1


def test_sizes_that_do_not_fit_into_memory_are_left_out() -> None:
    """Whole tiles along each of four axes would be thousands of millions of elements."""
    exported, *_ = load(str(CORPUS / "traced" / "depthwise.py"))
    kernel = exported.trace()
    held = [elements(kernel, size) for size in sizes_in_order(kernel)]
    assert held
    assert max(held) <= 1 << 22


def elements(kernel: Kernel, size: dict[str, int]) -> int:
    env = {symbol: size[symbol.name] for symbol in kernel.sizes}
    return sum(prod(int(evaluate(extent, env)) for extent in buffer.shape) for buffer in kernel.parameters)
