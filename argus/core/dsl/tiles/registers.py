"""Register tiles that are assigned in place: `registers`, `zeros` and `ones`."""

from __future__ import annotations

from argus.core.dsl.tiles.fragments import Fragment
from argus.core.dsl.tiles.values import allocate
from argus.core.dsl.tracer import current
from argus.core.dtype import DType
from argus.core.ir import File, Lit, Map
from argus.core.layout import TV


def registers(dtype: DType, layout: TV, *, file: File = "any", products: int | None = None) -> Fragment:
    """An uninitialised register tile, assigned in place (`x[:] = ...`, `x += ...`, `copy`, `mma`).

    file: "accumulation" puts a 32-bit tile into accumulation registers (AGPRs), on targets that have them. products:
    the most products that matrix instructions may add to an element before it is assigned again (I40), since they may
    add with fewer bits, or truncate.
    """
    tracer = current("registers")
    return Fragment(allocate(tracer, dtype, layout, tracer.name("registers"), file, products).view, mutable=True)


def zeros(dtype: DType, layout: TV, *, file: File = "any") -> Fragment:
    """A register tile of zeros, assigned in place. file: as for `registers`."""
    return _initialised_registers(dtype, layout, 0.0, "zeros", file)


def ones(dtype: DType, layout: TV) -> Fragment:
    """A register tile of ones, assigned in place."""
    return _initialised_registers(dtype, layout, 1.0, "ones")


def _initialised_registers(dtype: DType, layout: TV, value: float, kind: str, file: File = "any") -> Fragment:
    tracer = current(kind)
    tile = allocate(tracer, dtype, layout, tracer.name(kind), file)
    tracer.emit(Map(tile.view, Lit(value), span=tracer.span()))
    return Fragment(tile.view, mutable=True)
