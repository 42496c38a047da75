"""Raising the user's mistakes, at the user's line."""

from __future__ import annotations

from typing import NoReturn

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.dsl.place import span_of, user_frame
from argus.core.span import Span


def fault(code: str, message: str, *, help: str = "", here: str = "", span: Span | None = None) -> NoReturn:
    """Raise ArgusError for the DSL call being made (or at `span`)."""
    place = span_of(user_frame(), None) if span is None else span
    raise ArgusError(Diagnostic(code, "error", message, Label(place, here), help=help))
