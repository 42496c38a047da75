"""The design that is used without a search: what the best one of a search is compared with."""

from __future__ import annotations

from typing import assert_never

from argus.core.diagnostic import ArgusError
from argus.ops.choice import select
from argus.search.designs.space import situation
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Gemm, Problem


def usual_design(problem: Problem) -> tuple[str, str]:
    """Its name, and why it is this one."""
    match problem:
        case Gemm(m, n, k, dtype, target):
            try:
                return select(m, n, k, dtype, target), "chosen by `select` without a search"
            except ArgusError:
                return situation(problem).options[0].name, "the first design of the space"
        case FamilyProblem():
            return problem.space.usual, problem.space.why
        case KernelFile():
            return next(iter(problem.variants.values())).name, "the first kernel of the file, as it is"
        case _:
            assert_never(problem)
