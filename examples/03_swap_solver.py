"""Verify one kernel with several solvers: chosen by an argument, or for a block of code."""

from __future__ import annotations

import argus
from argus.kernels.gemm import gemm


def show(report: argus.Report) -> None:
    print(f"{report.solver}: {type(report.verdict).__name__}, {report.cost.smt} queries reached an SMT solver")


if __name__ == "__main__":
    for solver in ("z3", "cvc5"):
        show(argus.verify(gemm, solver=solver))
    with argus.use_solver("all"):
        show(argus.verify(gemm))
