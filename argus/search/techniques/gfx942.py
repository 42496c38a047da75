"""Transformations of the MI300X schedules `Cdna3Staged`, `Cdna3PingPong`, `Cdna3Interleaved` and `Cdna3`."""

from __future__ import annotations

from math import prod
from typing import assert_never

from attrs import evolve

from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.search.transformation import Design, Transformation, combine, increase_field, set_field

_BYTES, _LDS, _WAVE, _SCHEDULERS, _FILE, _VECTOR = 2, 65_536, 64, 4, 512, 8
_EIGHT_WAVES, _FOUR_WAVES = (2, 4), (2, 2)
_DEEP, _WIDE = 64, 128
"""K of an iteration, and what divides the tiles, of the interleaved mainloop of four waves."""


def _fits(design: Cdna3Staged) -> Cdna3Staged | None:
    """The design; None if it exceeds LDS, its accumulators take over half the registers, or waves do not divide it."""
    lds = design.buffers * (design.bm + design.bn) * design.bk * _BYTES
    rows, columns = (design.mfma * waves for waves in design.waves)
    whole = design.bm % rows == 0 and design.bn % columns == 0
    return design if whole and lds <= _LDS and _accumulator_registers(design) <= _register_budget(design) // 2 else None


def _accumulator_registers(design: Cdna3Staged) -> int:
    """32-bit accumulator registers per lane."""
    return design.bm * design.bn // design.threads


def _register_budget(design: Cdna3Staged) -> int:
    return _FILE // max(1, prod(design.waves) // _SCHEDULERS)


def _through_registers(design: Cdna3Staged) -> bool:
    return not design.direct


VECTOR_LOADS = set_field(Cdna3Staged, "vector", 8, 4, 2, when=_through_registers)
SWIZZLE = set_field(Cdna3Staged, "swizzle", True)
HARDWARE_BOUNDS_CHECK = combine(
    set_field(Cdna3Staged, "guarded", True, when=_through_registers),
    set_field(Cdna3PingPong, "guarded", True, low=False),
)
XCD_REMAP = combine(set_field(Cdna3Staged, "group", 2, 4, 8), set_field(Cdna3PingPong, "group", 2, 4, 8, low=0))
STAGGER_K = combine(
    *(set_field(kind, "stagger", 4, 8, 16) for kind in (Cdna3Staged, Cdna3PingPong, Cdna3Interleaved, Cdna3))
)
LOOP_UNROLLING = set_field(Cdna3Staged, "unroll", 2, 4)
ASYNC_COPY = set_field(Cdna3Staged, "direct", True)
PRIORITY = combine(set_field(Cdna3Staged, "priority", True), set_field(Cdna3PingPong, "priority", True, low=False))
SCHED_BARRIERS = set_field(Cdna3Staged, "pinned", True)
KPACK = set_field(Cdna3Staged, "run", 8)
SMALLER_MFMA = combine(set_field(Cdna3Staged, "mfma", 16), set_field(Cdna3PingPong, "mfma", 16, low=32))
LARGER_BN = combine(
    increase_field(Cdna3Staged, "bn", 64, 128, 256, fit=_fits), increase_field(Cdna3, "bn", 64, 128, 256)
)
LARGER_BM = combine(
    increase_field(Cdna3Staged, "bm", 64, 128, 256, fit=_fits), increase_field(Cdna3, "bm", 64, 128, 256)
)
LARGER_BK = increase_field(Cdna3Staged, "bk", 32, 64, fit=_fits)
AGPRS = combine(*(set_field(kind, "agprs", True) for kind in (Cdna3Staged, Cdna3PingPong, Cdna3)))
MORE_WAVES = set_field(Cdna3Staged, "waves", (2, 4), (4, 2), fit=_fits)


# -- conversions between kinds of schedules ------------------------------------------------------------------


def _interleave_fragments(design: Design) -> tuple[Design, ...]:
    match design:
        case Cdna3Staged() if design == _lockstep_schedule(made := _interleaved(design)):
            return (made,)
        case Cdna3Staged() if design == _lockstep_schedule(made := _by_four_waves(design)):
            return () if design.bk != _DEEP or design.bm % _WIDE or design.bn % _WIDE else (made,)
        case _:
            return ()


def _interleaved(design: Cdna3Staged) -> Cdna3PingPong:
    return Cdna3PingPong(
        bm=design.bm,
        bn=design.bn,
        bk=design.bk,
        group=design.group,
        mfma=design.mfma,
        skew=False,
        priority=design.priority,
        guarded=design.guarded,
        agprs=design.agprs,
    )


def _by_four_waves(design: Cdna3Staged) -> Cdna3Interleaved:
    return Cdna3Interleaved(
        bm=design.bm,
        bn=design.bn,
        bk=design.bk,
        group=design.group,
        mfma=design.mfma,
        wide=design.vector == _VECTOR,
        agprs=design.agprs,
    )


def _lockstep_schedule(design: Cdna3PingPong | Cdna3Interleaved) -> Cdna3Staged:
    """The same tile by the same waves in lockstep that load all fragments of an iteration at once."""
    found = Cdna3Staged(
        bm=design.bm,
        bn=design.bn,
        bk=design.bk,
        mfma=design.mfma,
        run=8,
        vector=_VECTOR,
        swizzle=True,
        guarded=True,
        group=design.group,
        agprs=design.agprs,
    )
    match design:
        case Cdna3PingPong():
            return evolve(found, waves=_EIGHT_WAVES, guarded=design.guarded, priority=design.priority)
        case Cdna3Interleaved():
            return evolve(found, waves=_FOUR_WAVES, vector=_VECTOR if design.wide else 1)
        case _:
            assert_never(design)


def _undo_interleaving(design: Design) -> Design | None:
    match design:
        case Cdna3PingPong(skew=False) | Cdna3Interleaved():
            return _lockstep_schedule(design)
        case _:
            return None


def _double_buffered(design: Design) -> Design | None:
    match design:
        case Cdna3(bm=bm, bn=bn, bk=bk, agprs=agprs):
            return Cdna3Staged(bm=bm, bn=bn, bk=bk, run=8, vector=8, swizzle=True, guarded=True, agprs=agprs)
        case _:
            return None


INTERLEAVED_FRAGMENT_LOADS = Transformation(_interleave_fragments, _undo_interleaving)
PING_PONG = set_field(Cdna3PingPong, "skew", True, low=False)
SOFTWARE_PIPELINING = combine(set_field(Cdna3Staged, "buffers", 2, fit=_fits), Transformation(undo=_double_buffered))
