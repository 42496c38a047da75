"""Techniques of how tiles come into shared memory, in schedules without roles."""

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.staged import Staged
from argus.search import fit_memory
from argus.search.transformation import Design, Transformation, joined, switched

_BYTES, _MOST = 2, 8


def _by_threads(design: Staged) -> bool:
    return not (design.tma or design.asynchronous)


def _width(width: int) -> Transformation:
    """A swizzle permutes chunks within as many bytes, of which a row has to have so many."""
    return switched(Staged, "swizzle", width, when=lambda design: design.bk * _BYTES >= width)


PIPELINED = joined(switched(Staged, "stages", 2, 3, 4, fit=fit_memory.staged))
VECTORS = switched(Staged, "vector", 8, 4, 2, when=_by_threads)
ASYNCHRONOUS = switched(Staged, "asynchronous", True, when=lambda design: not design.tma and design.vector > 1)


def _by_the_copy_engine(design: Design) -> tuple[Design, ...]:
    match design:
        case Staged(asynchronous=True, tma=False):
            return (evolve(design, tma=True, asynchronous=False, vector=1),)  # what threads do is not said of it
        case _:
            return ()


def _by_all_threads(design: Design) -> Design | None:
    match design:
        case Staged(tma=True):
            return evolve(design, tma=False, asynchronous=True, vector=_MOST)
        case _:
            return None


COPY_ENGINE = Transformation(_by_the_copy_engine, _by_all_threads)
WITHOUT_CONFLICTS = joined(*(_width(width) for width in (128, 64, 32)))
