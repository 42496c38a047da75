"""Suggests claims for a kernel: tests candidates on runs, proves them for all sizes, ranks them by mutants killed."""

from __future__ import annotations

from argus.verifier.suggest.suggest import Suggestion, Suggestions, suggest_invariants, with_suggested

__all__ = ["Suggestion", "Suggestions", "suggest_invariants", "with_suggested"]
