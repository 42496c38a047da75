"""Shipped kernels that a model is shown for problems other than a product: the modules of their schedules."""

from __future__ import annotations

import ast
import inspect
import re
from functools import lru_cache
from importlib import import_module

from argus.policy.llm.view import Example

_SHIPPED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("rows", ("sm_90a", "gfx942"), "rows softmax norm layernorm rms mean variance reduction"),
    ("attention_hopper", ("sm_90a",), "attention queries keys values scores softmax heads causal"),
    ("attention_cdna3", ("gfx942",), "attention queries keys values scores softmax heads causal"),
    ("decode", ("sm_90a",), "decode decoding cache paged attention"),
    ("grouped", ("sm_90a", "gfx942"), "moe expert experts routing tokens grouped"),
    ("shifted", ("sm_90a",), "conv conv2d convolution image images channels padding stride"),
)
"""Module of `argus.kernels.schedules`, its targets, and the words that retrieve it; of equals the first."""


def shipped_kernels() -> tuple[Example, ...]:
    """The schedules, as texts in the language without their imports."""
    return tuple(
        Example(name, target, subjects, f"# {name}.py of this repository: proved\n{module_text(name)}")
        for name, targets, subjects in _SHIPPED
        for target in targets
    )


def module_text(name: str) -> str:
    """A module of `argus.kernels.schedules`."""
    return without_imports(inspect.getsource(import_module(f"argus.kernels.schedules.{name}")))


@lru_cache(maxsize=32)
def without_imports(source: str) -> str:
    """A module's text without its imports."""
    tree = ast.parse(source)
    imports = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    gone = {number for each in imports for number in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    kept = (line for number, line in enumerate(source.splitlines(), 1) if number not in gone)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept).strip())
