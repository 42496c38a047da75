"""Modules that stand for `tensor-layouts` while its tests run; see `benchmarks/layout_names.py`."""

# pyright: basic
# ruff: noqa: ANN401 reason: an adapter of names, whose operands are whatever the other library takes

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from peers import tensor_layouts_analysis, tensor_layouts_names


class NotOfferedError(Exception):
    """A name of theirs that is no part of `argus.layout`: plots, and models of memory without a machine."""


class _Stub(ModuleType):
    """A module in place of one of theirs; a name that Argus lacks can be imported, and raises when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_: Any, **__: Any) -> Any:
            raise NotOfferedError(name)

        return missing


_IMPORTED = ("annotations", "Callable", "Iterator", "Any")
PARTS = ("", ".analysis", ".layouts", ".layout_utils", ".tensor", ".viz")
ATOMS = ("atoms", "atoms_nv")
OUT_OF_SCOPE = """
    tile_mma_grid segment_analysis coalescing_efficiency per_group_coalescing per_group_bank_conflicts bank_conflicts
"""
"""Names that their tests import with a star; others are found when they are used."""


def install(tests: Path) -> None:
    """Puts modules with these names in place of the package `tensor_layouts`.

    tests: their folder. The tables of instructions beside it (`src/tensor_layouts/atoms*.py`) are data for operations
    of Argus, and are loaded with its layouts; without them, their names are not offered.
    """
    adapted = {**vars(tensor_layouts_names), **vars(tensor_layouts_analysis)}.items()
    names = {name: value for name, value in adapted if name[0] != "_" and name not in {"ours", "to_argus", *_IMPORTED}}
    for part in PARTS:
        module = _Stub(f"tensor_layouts{part}")
        module.__dict__.update(names, **{name: getattr(module, name) for name in OUT_OF_SCOPE.split()})
        sys.modules[module.__name__] = module
    for name in ATOMS:
        module = _Stub(f"tensor_layouts.{name}")
        module.__dict__["__package__"] = "tensor_layouts"
        sys.modules[module.__name__] = module
        source = tests.resolve().parent / "src" / "tensor_layouts" / f"{name}.py"
        if source.exists():
            exec(compile(source.read_text(), str(source), "exec"), module.__dict__)  # noqa: S102 reason: as an import
