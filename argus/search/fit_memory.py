"""Designs made to fit the memory of their machine: as many slots as there is room for."""

from __future__ import annotations

from attrs import evolve

from argus.core.target import sm_90a
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.search.tuning.candidates import most_stages

_ELEMENT, _SUM, _ROWS, _WIDTH = 2, 4, 64, 64
_AROUND = 2_048
"""Bytes for barriers, and for tiles to begin at multiples of 1024."""
_FEWEST, _CHUNK = 2, 8
_SPAN = 128
_MOST_SUMS = 192
"""32-bit sums that a thread may hold beside what it computes with."""


def hopper(design: Hopper) -> Hopper | None:
    """With fewer slots where it has too many; None below two."""
    slots = min(design.stages, most_stages(design))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def skinny(design: Skinny) -> Skinny | None:
    slots = min(design.stages, _room(0) // ((design.bm + _ROWS) * design.bk * _ELEMENT))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def split(design: Split) -> Split | None:
    """Sums of a whole tile lie beside the slots; None where blocks cannot have equal parts of its columns."""
    if design.bn % (_CHUNK * design.splits):
        return None
    around = design.bm * design.bn * _SUM
    slots = min(design.stages, _room(around) // ((design.bm + design.bn) * design.bk * _ELEMENT))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def staged(design: Staged) -> Staged | None:
    """As it is; None where buffers do not fit, or the sums of one warpgroup its registers."""
    boxes = min(2, max(1, design.bn // _WIDTH)) * _ROWS * _WIDTH * _ELEMENT if design.box else 0
    slots = design.stages * (design.bm + design.bn) * design.bk * _ELEMENT
    sums = design.bm // _ROWS * design.bn // 2
    return design if slots <= _room(boxes) and sums <= _MOST_SUMS else None


def rows(design: Staged) -> Staged | None:
    """As `staged`, with a swizzle over whole rows if there is one at all."""
    width = min(_SPAN, design.bk * _ELEMENT)
    return staged(evolve(design, swizzle=width) if design.swizzle else design)


def _room(taken: int) -> int:
    return sm_90a.shared_bytes - _AROUND - taken
