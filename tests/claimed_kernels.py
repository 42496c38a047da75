"""Kernels of the corpus with a formula claimed at their end."""

from __future__ import annotations

from pathlib import Path

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel


def with_formula(path: Path, output: str, formula: str) -> Kernel:
    """The kernel of a file, which is its last function, with one more claim; `AL` is the language in the formula."""
    text = "import argus.language as AL\n" + path.read_text(encoding="utf-8")
    text += f"\n    AL.assert_equals({output}, {formula})\n"
    found: dict[str, object] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), found)  # noqa: S102 reason: a corpus file
    return next(value for value in found.values() if isinstance(value, Template)).trace()
