"""Argus: GPU kernels in Python whose data flow is proved, or refuted by a replayed counterexample.

A kernel imports `argus.language`; everything else that a program needs is here.
"""

from __future__ import annotations

from argus.api import build, interpret
from argus.core.diagnostic import ArgusError, InternalError
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Report, Unknown, Vacuous
from argus.matmul import matmul
from argus.solver_choice import use_solver
from argus.suggest import suggest_invariants
from argus.verify import verify

__version__ = "0.1.0"

__all__ = [
    "ArgusError",
    "Budget",
    "InternalError",
    "Proved",
    "Refuted",
    "Report",
    "Unknown",
    "Vacuous",
    "__version__",
    "build",
    "interpret",
    "matmul",
    "suggest_invariants",
    "use_solver",
    "verify",
]
