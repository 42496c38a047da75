"""Claims that were found and proved, written into the text of a kernel file."""

from __future__ import annotations

from argus.annotate.annotate import Annotated, annotate
from argus.annotate.text import Added

__all__ = ["Added", "Annotated", "annotate"]
