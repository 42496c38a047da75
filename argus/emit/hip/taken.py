"""Which of its texts a build takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from argus.core.ir import Kernel
from argus.emit.hip.code_intervals import code_intervals, numbers_of_lines
from argus.emit.hip.text import hip_statements, is_free
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names

T = TypeVar("T")


def taken(
    kernel: Kernel, texts: Sequence[str], compiled: Callable[[str], T], scratch: Callable[[T], int], seconds: float
) -> tuple[str, T]:
    """The first text without scratch memory, or that with the least, and what was made of it.

    texts: `compiled_texts`, or some of them. The first, if the kernel asks for the compiler's order, counts only
    where everything stands in its place. seconds: that the compiler may take. Raises as the compiler does.
    """
    first, *others = texts
    if others and is_free(kernel) and not stands(kernel, first, seconds):
        first, *others = others
    best = first, compiled(first)
    for text in others:
        if not scratch(best[1]):
            break
        made = compiled(text)
        best = (text, made) if scratch(made) < scratch(best[1]) else best
    return best


def stands(kernel: Kernel, text: str, seconds: float) -> bool:
    """Whether the compiler leaves every wait and barrier, and all that the program has between them, in its place."""
    statements = hip_statements(kernel, text)
    with tempfile.TemporaryDirectory() as folder:
        made = compile_hip(text, "made", Path(folder), seconds, lines=True, numbers=numbers_of_lines(statements))
    found = code_intervals(kernel, made.assembly_text, assign_names(kernel).kernel, statements)
    return not found.moved and found.boundaries[0] == found.boundaries[1]
