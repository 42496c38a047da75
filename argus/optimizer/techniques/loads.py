"""Techniques of how tiles come into shared memory, in schedules without roles."""

from __future__ import annotations

from argus.kernels.staged import Staged
from argus.optimizer.techniques import fit
from argus.optimizer.transformation import Transformation, joined, switched

_BYTES = 2


def _by_threads(design: Staged) -> bool:
    return not (design.tma or design.asynchronous)


def _width(width: int) -> Transformation:
    """A swizzle permutes chunks within as many bytes, of which a row has to have so many."""
    return switched(Staged, "swizzle", width, when=lambda design: design.bk * _BYTES >= width)


PIPELINED = joined(switched(Staged, "stages", 2, 3, 4, fit=fit.staged))
VECTORS = switched(Staged, "vector", 8, 4, 2, when=_by_threads)
ASYNCHRONOUS = switched(
    Staged, "asynchronous", True, when=lambda design: not design.tma and design.vector > 1
)
COPY_ENGINE = switched(Staged, "tma", True)
WITHOUT_CONFLICTS = joined(*(_width(width) for width in (128, 64, 32)))
