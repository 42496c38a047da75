"""Verification end to end, for cases without a corpus kernel: verdicts that must never be given."""

from __future__ import annotations

import pytest

import argus
from argus.core.verdict import Proved, Unknown
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    assert_written_once,
    bf16,
    block_id,
    ceil_div,
    copy,
    gfx942,
    global_load,
    kernel,
    load,
    spread,
    tag,
    vmem,
)


@kernel(target=gfx942, threads=64)
def divides_by_a_coordinate(A: Tensor["M 32", bf16], C: Tensor["M 32", bf16]) -> None:
    tag(A, lambda m, k: dict(m=m, k=k))
    (m,) = block_id((ceil_div(A.shape[0], 16),))
    by = spread((16, 32), threads=64, vector=8)
    tile = A.tile((16, 32), (m, 0)).gather((16, 32), lambda i, j: (i, j * j // j))
    held = load(tile, by, via=global_load, edge=0)
    vmem.wait(0)
    copy(held, C.tile((16, 32), (m, 0)), edge=0)
    assert_written_once(C, lambda m, k: dict(m=m, k=k))


@kernel(target=gfx942, threads=64)
def does_nothing(A: Tensor["M N", bf16]) -> None:
    """No output, so nothing that could be claimed."""
    tag(A, lambda m, n: dict(m=m, n=n))


def test_a_divisor_that_may_be_zero_is_not_proved_and_does_not_crash() -> None:
    assert isinstance(argus.verify(divides_by_a_coordinate, solver="z3").verdict, Unknown)


def test_a_kernel_without_outputs_does_not_pass() -> None:
    report = argus.verify(does_nothing, solver="z3")
    assert report.uncovered == ("(no output)",)
    assert report.exit_code == 2
    assert [d.code for d in report.diagnostics] == ["E404"]


@pytest.mark.parametrize("config", ["cdna3", "cdna3_pingpong"])
@pytest.mark.parametrize("solver", ["z3", "cvc5", "portfolio", "all"])
def test_the_shipped_kernels_are_proved_without_unknowns(solver: str, config: str) -> None:
    report = argus.verify(gemm, solver=solver, config=config)
    assert isinstance(report.verdict, Proved)
    assert report.verdict.results == ("each element of `C` is bf16(sum over k of A * B)",)
    assert {finding.standing for finding in report.findings} == {"proved", "not applicable"}
    assert report.exit_code == 0


def test_verdicts_and_reports_have_no_truth_value() -> None:
    report = argus.verify(gemm, solver="cvc5")
    with pytest.raises(TypeError, match="not a bool"):
        bool(report)
    with pytest.raises(TypeError, match="not a bool"):
        bool(report.verdict)
