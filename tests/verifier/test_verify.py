"""Verification end to end, for cases without a corpus kernel: verdicts that must never be given."""

# ruff: noqa: UP037
# Reason: the quotes in `Tensor["M N", bf16]` name sizes.

from __future__ import annotations

from typing import Any

import pytest

import argus
from argus.core.verdict import Proved, Unknown
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    assert_equals,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    gfx942,
    global_load,
    kernel,
    load,
    sm_90a,
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


@kernel(target=sm_90a, threads=32)
def assumes_what_is_known(X: Tensor["8 32", f32], Y: Tensor["8 32", f32]) -> None:
    assume(X.shape[0] >= 8)
    (m,) = block_id((8,))
    copy(load(X[m], spread((32,), threads=32, vector=1)), Y[m])


def test_an_assumption_that_is_always_true_is_not_listed() -> None:
    """As that of a kernel about a workspace of a known extent."""
    verdict = argus.verify(assumes_what_is_known, solver="z3").verdict

    assert isinstance(verdict, Proved)
    assert verdict.assumptions == ("tensors are row-major, aligned to 16 bytes and do not overlap: X, Y",)


def chained(value: Any, steps: int) -> Any:  # noqa: ANN401 reason: a tile, or an element in a formula
    """The value halved and raised so many times, each time what was before."""
    for step in range(steps):
        value = value * 0.5 + float(step % 7)
    return value


@pytest.mark.share(32, among="verifier: verify")
@pytest.mark.parametrize("steps", [100, 200])
def test_a_long_chain_of_operations_is_not_proved_and_does_not_crash(steps: int) -> None:
    @kernel(target=sm_90a, threads=32)
    def chain(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
        assume(X.shape[0] % 4 == 0)
        (b,) = block_id((ceil_div(X.shape[0], 128),))
        x = load(X.tile((128,), (b,)), spread((128,), threads=32, vector=4), edge=0)
        copy(chained(x, steps), Y.tile((128,), (b,)), edge=0)
        assert_equals(Y, lambda i: chained(elements(X)(i), steps))

    assert isinstance(argus.verify(chain, solver="z3").verdict, Unknown)


def test_a_kernel_without_outputs_does_not_pass() -> None:
    report = argus.verify(does_nothing, solver="z3")
    assert report.uncovered == ("(no output)",)
    assert report.exit_code == 2
    assert [d.code for d in report.diagnostics] == ["E404"]


@pytest.mark.share(32, among="verifier: verify")
@pytest.mark.parametrize("config", ["cdna3", "cdna3_pingpong"])
@pytest.mark.parametrize("solver", ["z3", "cvc5", "portfolio", "all"])
def test_the_shipped_kernels_are_proved_without_unknowns(solver: str, config: str) -> None:
    report = argus.verify(gemm, solver=solver, config=config)
    assert isinstance(report.verdict, Proved)
    assert report.verdict.results == ("each element of `C` is bf16(sum over k of A * B)",)
    assert {finding.standing for finding in report.findings} == {"proved", "not applicable"}
    assert report.exit_code == 0


@pytest.mark.share(3)
def test_verdicts_and_reports_have_no_truth_value() -> None:
    report = argus.verify(gemm, solver="cvc5")
    with pytest.raises(TypeError, match="not a bool"):
        bool(report)
    with pytest.raises(TypeError, match="not a bool"):
        bool(report.verdict)
