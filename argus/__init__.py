"""Argus: GPU kernels in Python whose data flow is proved, or refuted by a replayed counterexample.

A kernel imports `argus.language`; everything else that a program needs is here.
"""

from __future__ import annotations

from argus.api import build, interpret, verify
from argus.core.diagnostic import ArgusError, InternalError
from argus.core.query import Budget
from argus.core.verdict import ProgramReport, Proved, Refuted, Report, Unknown, Vacuous
from argus.matmul import matmul
from argus.optimizer.run import optimize
from argus.scaled import scaled_matmul
from argus.solver_choice import use_solver
from argus.suggest import suggest_invariants

__version__ = "0.1.0"

__all__ = [
    "ArgusError",
    "Budget",
    "InternalError",
    "ProgramReport",
    "Proved",
    "Refuted",
    "Report",
    "Unknown",
    "Vacuous",
    "__version__",
    "build",
    "interpret",
    "matmul",
    "optimize",
    "scaled_matmul",
    "suggest_invariants",
    "use_solver",
    "verify",
]
