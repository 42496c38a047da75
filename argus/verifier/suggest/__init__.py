"""Claims proposed for a kernel: tried on runs, proved for all sizes, ranked by the mistakes that they exclude."""

from __future__ import annotations

from argus.verifier.suggest.suggest import Suggestion, Suggestions, suggest_invariants, with_suggested

__all__ = ["Suggestion", "Suggestions", "suggest_invariants", "with_suggested"]
