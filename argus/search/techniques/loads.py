"""Transformations of the loads to shared memory in the schedule `Staged`, which has no roles."""

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.staged import Staged
from argus.search import fit_memory
from argus.search.transformation import Design, Transformation, combine, set_field

_BYTES, _MOST = 2, 8


def _loads_by_threads(design: Staged) -> bool:
    return not (design.tma or design.asynchronous)


def _width(width: int) -> Transformation:
    """Set a swizzle of `width` bytes, for rows of at least that length."""
    return set_field(Staged, "swizzle", width, when=lambda design: design.bk * _BYTES >= width)


SOFTWARE_PIPELINING = combine(set_field(Staged, "stages", 2, 3, 4, fit=fit_memory.staged))
VECTOR_LOADS = set_field(Staged, "vector", 8, 4, 2, when=_loads_by_threads)
ASYNC_COPY = set_field(Staged, "asynchronous", True, when=lambda design: not design.tma and design.vector > 1)


def _use_tma(design: Design) -> tuple[Design, ...]:
    match design:
        case Staged(asynchronous=True, tma=False):
            return (evolve(design, tma=True, asynchronous=False, vector=1),)  # fields of thread loads back to defaults
        case _:
            return ()


def _use_cp_async(design: Design) -> Design | None:
    match design:
        case Staged(tma=True):
            return evolve(design, tma=False, asynchronous=True, vector=_MOST)
        case _:
            return None


TMA_LOADS = Transformation(_use_tma, _use_cp_async)
SWIZZLE = combine(*(_width(width) for width in (128, 64, 32)))
