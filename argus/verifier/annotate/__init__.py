"""Writes claims that were suggested and proved into the source of a kernel file."""

from __future__ import annotations

from argus.verifier.annotate.annotate import Annotated, annotate
from argus.verifier.annotate.text import Added

__all__ = ["Added", "Annotated", "annotate"]
