"""Modules that stand for `tensor-layouts` while its tests run; see `benchmarks/layout_names.py`."""

# pyright: basic
# ruff: noqa: ANN401 reason: an adapter of names, whose operands are whatever the other library takes

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from peers import tensor_layouts_names


class NotOfferedError(Exception):
    """A name of theirs that is no part of `argus.layout`: atoms, plots, and what has another form here."""


class _Stub(ModuleType):
    """A module in place of one of theirs; a name that Argus lacks can be imported, and raises when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_: Any, **__: Any) -> Any:
            raise NotOfferedError(name)

        return missing


_IMPORTED = ("annotations", "Callable", "Iterator", "Any")
LACKING = """
    shape_mod safe_div make_swizzle make_layout_like tile_mma_grid image offset_table footprint contiguity cycles
    fixed_points order mode_contiguity segment_analysis slice_contiguity coalescing_efficiency per_group_coalescing
    per_group_bank_conflicts bank_conflicts
"""


def install() -> None:
    """Puts modules with these names in place of the package `tensor_layouts`."""
    adapted = vars(tensor_layouts_names).items()
    names = {name: value for name, value in adapted if name[0] != "_" and name not in {"ours", "to_argus", *_IMPORTED}}
    for part in ("", ".analysis", ".layouts", ".layout_utils", ".tensor", ".atoms_nv", ".viz"):
        module = _Stub(f"tensor_layouts{part}")
        module.__dict__.update(names, **{name: getattr(module, name) for name in LACKING.split()})
        sys.modules[module.__name__] = module
