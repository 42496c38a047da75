"""Argus for torch: `torch.compile(model, backend="argus")`. It needs the `torch` extra.

`report()` lists what each compiled graph became; `argus.torch.backend.argus_backend` is the backend itself.
"""

from __future__ import annotations

from typing import Any

import torch._dynamo

from argus.torch.report import clear_report, report

__all__ = ["clear_report", "report"]


def _register() -> None:
    """Make the backend known by its name where the package's entry points are not installed."""
    dynamo: Any = torch._dynamo
    if "argus" not in dynamo.list_backends(None):
        from argus.torch.backend import argus_backend  # noqa: PLC0415 reason: it imports this package

        dynamo.register_backend(argus_backend, "argus")


_register()
