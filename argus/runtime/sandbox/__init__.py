"""The sandbox: runs untrusted kernel text in isolation, and verifies the kernels it defines in a separate process."""

from __future__ import annotations

from argus.runtime.sandbox.isolation import choose_isolation, probe_isolation
from argus.runtime.sandbox.operations import ReferenceOutputs, evaluate_reference, run, trace_text
from argus.runtime.sandbox.request import (
    Answer,
    Array,
    Build,
    Built,
    CheckedKernel,
    Compared,
    Failed,
    Interpret,
    Interpreted,
    Limits,
    Refused,
    Request,
    Suggest,
    Suggested,
    Task,
    Verified,
    Verify,
)

__all__ = [
    "Answer",
    "Array",
    "Build",
    "Built",
    "CheckedKernel",
    "Compared",
    "Failed",
    "Interpret",
    "Interpreted",
    "Limits",
    "ReferenceOutputs",
    "Refused",
    "Request",
    "Suggest",
    "Suggested",
    "Task",
    "Verified",
    "Verify",
    "choose_isolation",
    "evaluate_reference",
    "probe_isolation",
    "run",
    "trace_text",
]
