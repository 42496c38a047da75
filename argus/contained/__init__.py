"""Kernel text that nobody vouches for: run apart from everything, and believed in nothing but what is proved of it."""

from __future__ import annotations

from argus.contained.isolation import chosen, probed
from argus.contained.request import (
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
from argus.contained.running import Referred, referred, run, traced

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
