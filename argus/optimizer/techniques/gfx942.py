"""Techniques of the schedules for MI300X."""

from __future__ import annotations

from math import prod

from attrs import evolve

from argus.kernels.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.cdna3_staged import Cdna3Staged
from argus.optimizer.transformation import Design, Transformation, climbed, joined, switched

_BYTES, _LDS, _WAVE, _SCHEDULERS, _FILE = 2, 65_536, 64, 4, 512
_AGPRS, _EDGE = 256, 256
"""Registers of a lane that products alone may sum into, and the edge of the tile that four waves fill them with."""


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
GUARDED = switched(Cdna3Staged, "guarded", True, when=_through_registers)
BANDS = switched(Cdna3Staged, "group", 2, 4, 8)
STAGGERED = switched(Cdna3Staged, "stagger", 4, 8, 16)
UNROLLED = switched(Cdna3Staged, "unroll", 2, 4)
ASYNCHRONOUS = switched(Cdna3Staged, "direct", True)
PRIORITY = switched(Cdna3Staged, "priority", True)
PINNED = switched(Cdna3Staged, "pinned", True)
LONG_RUNS = switched(Cdna3Staged, "run", 8)
SMALL_PRODUCTS = switched(Cdna3Staged, "mfma", 16)
WIDER = climbed(Cdna3Staged, "bn", 64, 128, 256, fit=_fits)
TALLER = climbed(Cdna3Staged, "bm", 64, 128, 256, fit=_fits)
DEEPER = climbed(Cdna3Staged, "bk", 32, 64, fit=_fits)
MORE_WAVES = switched(Cdna3Staged, "waves", (2, 4), (4, 2), fit=_fits)


# -- sums in all registers that only products use ------------------------------------------------------------


def _accumulating(design: Design) -> tuple[Design, ...]:
    """One wave a scheduler may have 512 registers: 256 for sums, 256 for all else."""
    match design:
        case Cdna3Staged(waves=(2, 2)) if _sums(design) < _AGPRS:
            made = _fits(evolve(design, bm=_EDGE, bn=_EDGE))
            return () if made is None else (made,)
        case _:
            return ()


def _with_fewer_sums(design: Design) -> Design | None:
    match design:
        case Cdna3Staged(bm=256, bn=256, waves=(2, 2)):
            return evolve(design, bm=_EDGE // 2, bn=_EDGE // 2)
        case _:
            return None


AGPRS = Transformation(_accumulating, _with_fewer_sums)


# -- to and from the schedules that are shipped --------------------------------------------------------------

_IN_STEP = Cdna3Staged(
    bm=256, bn=256, bk=64, waves=(2, 4), mfma=16, run=8, vector=8, swizzle=True, guarded=True, group=4, priority=True
)
"""What the ping-pong schedule is if all waves do the same at the same time."""
_ONE_BUFFER = Cdna3Staged(bm=128, bn=128, bk=32, run=8, vector=8, swizzle=True, guarded=True)


def _out_of_step(design: Design) -> tuple[Design, ...]:
    return (Cdna3PingPong(),) if design == _IN_STEP else ()


def _in_step(design: Design) -> Design | None:
    return _IN_STEP if design == Cdna3PingPong() else None


def _of_two_buffers(design: Design) -> Design | None:
    return _ONE_BUFFER if design == Cdna3() else None


PING_PONG = Transformation(_out_of_step, _in_step)
PIPELINED = joined(switched(Cdna3Staged, "buffers", 2, fit=_fits), Transformation(undo=_of_two_buffers))
