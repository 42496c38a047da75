"""Register tiles that are assigned in place: uninitialised, or filled with one number."""

from __future__ import annotations

from argus.core.dsl.tiles.fragments import Fragment
from argus.core.dsl.tiles.values import allocate
from argus.core.dsl.tracer import current
from argus.core.dtype import DType
from argus.core.ir import File, Lit, Map
from argus.core.layout import TV


def registers(dtype: DType, layout: TV, *, file: File = "any") -> Fragment:
    """A register tile, uninitialised, assigned in place (`x[:] = ...`, `x += ...`, `copy`, `mma`).

    file: "accumulation" for sums that stay in the registers which only matrix instructions work on, on targets that
    have any.
    """
    tracer = current("registers")
    return Fragment(allocate(tracer, dtype, layout, tracer.name("registers"), file).view, mutable=True)


def zeros(dtype: DType, layout: TV, *, file: File = "any") -> Fragment:
    """A register tile of zeros, assigned in place. file: as of `registers`."""
    return _filled(dtype, layout, 0.0, "zeros", file)


def ones(dtype: DType, layout: TV) -> Fragment:
    """A register tile of ones, assigned in place."""
    return _filled(dtype, layout, 1.0, "ones")


def _filled(dtype: DType, layout: TV, value: float, kind: str, file: File = "any") -> Fragment:
    tracer = current(kind)
    held = allocate(tracer, dtype, layout, tracer.name(kind), file)
    tracer.emit(Map(held.view, Lit(value), span=tracer.span()))
    return Fragment(held.view, mutable=True)
