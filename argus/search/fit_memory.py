"""Reduces a design's number of pipeline stages until it fits into shared memory."""

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
"""Bytes of shared memory for mbarriers and for aligning tiles to 1024 bytes."""
_FEWEST, _CHUNK = 2, 8
_SPAN = 128
_MOST_SUMS = 192
"""Most 32-bit accumulator registers of a thread."""


def hopper(design: Hopper) -> Hopper | None:
    """The design with at most as many stages as fit; None if fewer than two fit."""
    slots = min(design.stages, most_stages(design))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def skinny(design: Skinny) -> Skinny | None:
    """The design with at most as many stages as fit; None if fewer than two fit."""
    slots = min(design.stages, _room(0) // ((design.bm + _ROWS) * design.bk * _ELEMENT))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def split(design: Split) -> Split | None:
    """As `hopper`; reserves memory for the partial sums. None if columns do not divide evenly among the splits."""
    if design.bn % (_CHUNK * design.splits):
        return None
    around = design.bm * design.bn * _SUM
    slots = min(design.stages, _room(around) // ((design.bm + design.bn) * design.bk * _ELEMENT))
    return evolve(design, stages=slots) if slots >= _FEWEST else None


def staged(design: Staged) -> Staged | None:
    """The design unchanged; None if its buffers exceed shared memory or its accumulators the registers."""
    boxes = min(2, max(1, design.bn // _WIDTH)) * _ROWS * _WIDTH * _ELEMENT if design.box else 0
    slots = design.stages * (design.bm + design.bn) * design.bk * _ELEMENT
    sums = design.bm // _ROWS * design.bn // 2
    return design if slots <= _room(boxes) and sums <= _MOST_SUMS else None


def rows(design: Staged) -> Staged | None:
    """As `staged`; a swizzled design gets the swizzle of its row length."""
    width = min(_SPAN, design.bk * _ELEMENT)
    return staged(evolve(design, swizzle=width) if design.swizzle else design)


def _room(taken: int) -> int:
    return sm_90a.shared_bytes - _AROUND - taken
