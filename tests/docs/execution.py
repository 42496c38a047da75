"""Executes the Python of documents: blocks of pages, cells of notebooks."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from types import ModuleType


def executed(blocks: Iterable[tuple[str, str]]) -> ModuleType:
    """The module that blocks of code make, each with the name of its file; each sees the names of those before it."""
    module = ModuleType("document")
    for name, code in blocks:
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        exec(compile(code, name, "exec"), module.__dict__)  # noqa: S102 reason: code of our own documents
    return module
