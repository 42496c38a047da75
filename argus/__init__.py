"""Argus: GPU kernels in Python whose data flow is proved, or refuted by a replayed counterexample.

A kernel imports `argus.language`; everything else that a program needs is here. Each name is imported on first use, so
that `import argus` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argus.core.diagnostic import ArgusError, InternalError
    from argus.core.query import Budget
    from argus.core.verdict import ProgramReport, Proved, Refuted, Report, Unknown, Vacuous
    from argus.ops.attention import attention
    from argus.ops.attention_decode import attention_decode
    from argus.ops.attention_varlen import attention_varlen
    from argus.ops.dropout import dropout
    from argus.ops.expert_order import expert_order
    from argus.ops.grouped_matmul import grouped_matmul
    from argus.ops.matmul import matmul
    from argus.ops.moe import moe
    from argus.ops.received_order import received_order
    from argus.ops.route import route
    from argus.ops.rows import (
        cross_entropy,
        cumsum,
        group_norm,
        layer_norm,
        log_softmax,
        rms_norm,
        row_mean,
        row_sum,
        softmax,
    )
    from argus.ops.scaled_matmul import scaled_matmul
    from argus.search.run import optimize
    from argus.solvers.choice import use_solver
    from argus.verifier.api import build, interpret, verify
    from argus.verifier.suggest import suggest_invariants

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
    "attention",
    "attention_decode",
    "attention_varlen",
    "build",
    "cross_entropy",
    "cumsum",
    "dropout",
    "expert_order",
    "group_norm",
    "grouped_matmul",
    "interpret",
    "layer_norm",
    "log_softmax",
    "matmul",
    "moe",
    "optimize",
    "received_order",
    "rms_norm",
    "route",
    "row_mean",
    "row_sum",
    "scaled_matmul",
    "softmax",
    "suggest_invariants",
    "use_solver",
    "verify",
]

_HOMES = {
    "ArgusError": "argus.core.diagnostic",
    "Budget": "argus.core.query",
    "InternalError": "argus.core.diagnostic",
    "ProgramReport": "argus.core.verdict",
    "Proved": "argus.core.verdict",
    "Refuted": "argus.core.verdict",
    "Report": "argus.core.verdict",
    "Unknown": "argus.core.verdict",
    "Vacuous": "argus.core.verdict",
    "attention": "argus.ops.attention",
    "attention_decode": "argus.ops.attention_decode",
    "attention_varlen": "argus.ops.attention_varlen",
    "build": "argus.verifier.api",
    "cross_entropy": "argus.ops.rows",
    "cumsum": "argus.ops.rows",
    "dropout": "argus.ops.dropout",
    "expert_order": "argus.ops.expert_order",
    "group_norm": "argus.ops.rows",
    "grouped_matmul": "argus.ops.grouped_matmul",
    "interpret": "argus.verifier.api",
    "layer_norm": "argus.ops.rows",
    "log_softmax": "argus.ops.rows",
    "matmul": "argus.ops.matmul",
    "moe": "argus.ops.moe",
    "optimize": "argus.search.run",
    "received_order": "argus.ops.received_order",
    "rms_norm": "argus.ops.rows",
    "route": "argus.ops.route",
    "row_mean": "argus.ops.rows",
    "row_sum": "argus.ops.rows",
    "scaled_matmul": "argus.ops.scaled_matmul",
    "softmax": "argus.ops.rows",
    "suggest_invariants": "argus.verifier.suggest",
    "use_solver": "argus.solvers.choice",
    "verify": "argus.verifier.api",
}


def __getattr__(name: str) -> object:
    """Import a name of `__all__`, a subpackage such as `argus.layout`, or a name that moved, on first use."""
    home = _HOMES.get(name)
    if home is None:
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"{__name__}.{name}":
                raise
        return import_module(f"{__name__}.deprecated").moved(__name__, name)
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
