"""Kernel text that nobody vouches for: run apart from everything, and believed in nothing but what is proved of it."""

from __future__ import annotations

from argus.runtime.sandbox.isolation import chosen, probed
from argus.runtime.sandbox.operations import Referred, referred, run, traced
from argus.runtime.sandbox.request import (
    Answer,
    Array,
    Build,
    Built,
    Compared,
    Failed,
    Interpret,
    Interpreted,
    Judged,
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
    "Compared",
    "Failed",
    "Interpret",
    "Interpreted",
    "Judged",
    "Limits",
    "Referred",
    "Refused",
    "Request",
    "Suggest",
    "Suggested",
    "Task",
    "Verified",
    "Verify",
    "chosen",
    "probed",
    "referred",
    "run",
    "traced",
]
