"""Techniques of the schedules for MI300X."""

from __future__ import annotations

from math import prod

from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.search.transformation import Design, Transformation, climbed, joined, switched

_BYTES, _LDS, _WAVE, _SCHEDULERS, _FILE = 2, 65_536, 64, 4, 512
_EIGHT = (2, 4)


def _fits(design: Cdna3Staged) -> Cdna3Staged | None:
    """None where LDS is too small, the sums of a wave leave no registers for anything else, or waves have no tile."""
    lds = design.buffers * (design.bm + design.bn) * design.bk * _BYTES
    rows, columns = (design.mfma * waves for waves in design.waves)
    whole = design.bm % rows == 0 and design.bn % columns == 0
    return design if whole and lds <= _LDS and _sums(design) <= _room(design) // 2 else None


def _sums(design: Cdna3Staged) -> int:
    """32-bit registers of a lane."""
    return design.bm * design.bn // design.threads


def _room(design: Cdna3Staged) -> int:
    return _FILE // max(1, prod(design.waves) // _SCHEDULERS)


def _through_registers(design: Cdna3Staged) -> bool:
    return not design.direct


VECTORS = switched(Cdna3Staged, "vector", 8, 4, 2, when=_through_registers)
WITHOUT_CONFLICTS = switched(Cdna3Staged, "swizzle", True)
GUARDED = joined(
    switched(Cdna3Staged, "guarded", True, when=_through_registers), switched(Cdna3PingPong, "guarded", True, low=False)
)
BANDS = joined(switched(Cdna3Staged, "group", 2, 4, 8), switched(Cdna3PingPong, "group", 2, 4, 8, low=0))
STAGGERED = switched(Cdna3Staged, "stagger", 4, 8, 16)
UNROLLED = switched(Cdna3Staged, "unroll", 2, 4)
ASYNCHRONOUS = switched(Cdna3Staged, "direct", True)
PRIORITY = joined(switched(Cdna3Staged, "priority", True), switched(Cdna3PingPong, "priority", True, low=False))
PINNED = switched(Cdna3Staged, "pinned", True)
LONG_RUNS = switched(Cdna3Staged, "run", 8)
SMALL_PRODUCTS = joined(switched(Cdna3Staged, "mfma", 16), switched(Cdna3PingPong, "mfma", 16, low=32))
WIDER = joined(climbed(Cdna3Staged, "bn", 64, 128, 256, fit=_fits), climbed(Cdna3, "bn", 64, 128, 256))
TALLER = joined(climbed(Cdna3Staged, "bm", 64, 128, 256, fit=_fits), climbed(Cdna3, "bm", 64, 128, 256))
DEEPER = climbed(Cdna3Staged, "bk", 32, 64, fit=_fits)
ACCUMULATION = joined(*(switched(kind, "agprs", True) for kind in (Cdna3Staged, Cdna3PingPong, Cdna3)))
MORE_WAVES = switched(Cdna3Staged, "waves", (2, 4), (4, 2), fit=_fits)


# -- to and from the schedules that are shipped --------------------------------------------------------------


def _in_slices(design: Design) -> tuple[Design, ...]:
    match design:
        case Cdna3Staged() if design == _whole(made := _sliced(design)):
            return (made,)
        case _:
            return ()


def _sliced(design: Cdna3Staged) -> Cdna3PingPong:
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


def _whole(design: Cdna3PingPong) -> Cdna3Staged:
    """The tile of eight waves in step that take all of a step's fragments at once."""
    return Cdna3Staged(
        bm=design.bm,
        bn=design.bn,
        bk=design.bk,
        waves=_EIGHT,
        mfma=design.mfma,
        run=8,
        vector=8,
        swizzle=True,
        guarded=design.guarded,
        group=design.group,
        priority=design.priority,
        agprs=design.agprs,
    )


def _at_once(design: Design) -> Design | None:
    match design:
        case Cdna3PingPong(skew=False):
            return _whole(design)
        case _:
            return None


def _of_two_buffers(design: Design) -> Design | None:
    match design:
        case Cdna3(bm=bm, bn=bn, bk=bk, agprs=agprs):
            return Cdna3Staged(bm=bm, bn=bn, bk=bk, run=8, vector=8, swizzle=True, guarded=True, agprs=agprs)
        case _:
            return None


SLICES = Transformation(_in_slices, _at_once)
PING_PONG = switched(Cdna3PingPong, "skew", True, low=False)
PIPELINED = joined(switched(Cdna3Staged, "buffers", 2, fit=_fits), Transformation(undo=_of_two_buffers))
