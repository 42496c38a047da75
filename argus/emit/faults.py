"""Diagnostics for constructs that this version does not emit."""

from __future__ import annotations

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.span import NOWHERE, Span


def not_built(what: str, span: Span = NOWHERE, kernel: str = "") -> ArgusError:
    """The error E501 for a construct without an emitted form."""
    return ArgusError(
        Diagnostic(
            "E501",
            "error",
            f"not built yet: emission of {what}",
            primary=Label(span, "this cannot be emitted"),
            help="write it with statements that are emitted: copy, mma, element-wise values, wait, sync, loop, when",
            kernel=kernel,
        )
    )
