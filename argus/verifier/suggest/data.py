"""Suggestions as JSON in the schema `argus.suggestions/1`."""

from __future__ import annotations

from attrs import asdict

from argus.core.span import Span
from argus.report.diagnostic_text import frame_json
from argus.verifier.suggest.suggest import Suggestion, Suggestions


def suggestions_json(made: Suggestions) -> dict[str, object]:
    """One kernel's suggestions, in the schema `argus.suggestions/1`."""
    plain = asdict(made, recurse=False)
    for name in ("found", "implied", "open", "formulas"):
        plain[name] = [_suggestion(each) for each in getattr(made, name)]
    return plain


def _suggestion(each: Suggestion) -> dict[str, object]:
    plain: dict[str, object] = asdict(each, recurse=False)
    return {**plain, "at": _frame(each.at)}


def _frame(span: Span) -> dict[str, object] | None:
    return None if span.frame is None else frame_json(span.frame)
