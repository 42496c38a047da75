"""Verification end to end: prove, refute by replay, suggest and annotate."""
