"""Designs whose kernels do not admit a problem's extents are left out of its search space."""

from __future__ import annotations

from typing import Literal

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.interp.search.search import assumed, holds
from argus.kernels.row_alignment import admits_rows
from argus.search.designs.space import situation
from argus.search.problems.problem import Gemm, problem_of
from argus.search.tuning.candidates import design_space
from tests.tiers import Tier

Name = Literal["gfx942", "sm_90a"]
STRIDE = {"default": 40, "all": 1, "every": 1}


def traced(problem: Gemm, name: str) -> Kernel | None:
    """The design's kernel; None if it is ill-formed at every size."""
    try:
        return problem.kernel(name)
    except ArgusError:
        return None


@pytest.mark.parametrize("target", ["gfx942", "sm_90a"])
def test_designs_are_left_out_exactly_if_their_kernels_assume_other_rows(target: Name, tier: Tier) -> None:
    odd = ((4097, 4097, 4097), (4096, 4097, 4096), (4096, 4096, 4097), (4097, 4096, 4096))
    compared = set[tuple[str, bool]]()
    for name, config in list(design_space(target).items())[:: STRIDE[tier]]:
        kernel = traced(Gemm(*odd[0], "bf16", target), name)
        for m, n, k in odd if kernel is not None else ():
            problem = Gemm(m, n, k, "bf16", target)
            admitted = holds(kernel, assumed(kernel), problem.sizes) if kernel is not None else False
            assert admits_rows(config, problem.sizes) is admitted, f"{name} at {problem}"
            compared.add((type(config).__name__, admitted))
    assert {admitted for _, admitted in compared} == {True, False}


@pytest.mark.parametrize(("extent", "designs"), [(4096, 611), (4097, 42)])
def test_only_designs_that_fit_are_counted(extent: int, designs: int) -> None:
    problem = problem_of(f"gemm:{extent}x{extent}x{extent}", "gfx942")
    options = situation(problem).options

    assert len(options) == designs
    kinds = {str(dict(each.knobs)["kind"]) for each in options}
    assert (kinds == {"Cdna3Staged", "Cdna3Interleaved"}) is (extent == 4097)
