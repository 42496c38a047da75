"""Techniques of the schedules for Hopper that have roles, rings and clusters."""

from __future__ import annotations

from attrs import evolve

from argus.kernels.hopper import Hopper
from argus.kernels.skinny import Skinny
from argus.kernels.split import Split
from argus.kernels.staged import Staged
from argus.optimizer.techniques import fit
from argus.optimizer.transformation import Design, Transformation, climbed, joined, switched

_BANDS = (4, 8, 16)
_CURVE = 16
_WIDE = 128
_MOST_SLOTS = 8
_ROW_ALONE = (1,)
_ELEMENT, _SPAN = 2, 128


def _ordered(design: Hopper) -> bool:
    return design.persistent


def _boxed_wide(design: Hopper) -> bool:
    """Whether a tile has more parts than it has boxes."""
    return design.box and design.bn > _WIDE and not design.pingpong


def _alone(design: Hopper) -> bool:
    return design.cluster == _ROW_ALONE and not design.pingpong


SUPER_TILES = joined(
    switched(Hopper, "group", *_BANDS, when=lambda design: not design.curve), switched(Staged, "group", *_BANDS)
)
CURVE = switched(Hopper, "curve", _CURVE, when=lambda design: not design.group)
PERSISTENT = switched(Hopper, "persistent", True, when=_alone, low=False)
REALLOCATION = switched(Hopper, "realloc", True, low=False)
IN_FLIGHT = switched(Hopper, "flight", True, low=False)
BOX = joined(
    switched(Hopper, "box", True, low=False, when=lambda design: not design.whole, fit=fit.hopper),
    switched(Staged, "box", True, fit=fit.staged),
)
WHOLE = switched(Hopper, "whole", True, when=_boxed_wide, fit=fit.hopper)
ONE_BOX = switched(Hopper, "turns", 1, when=lambda design: design.box and not design.whole)
MULTICAST = switched(
    Hopper, "cluster", (2, 1), (1, 2), when=lambda design: design.persistent and not design.pingpong, fit=fit.hopper
)
WIDER = joined(
    climbed(Hopper, "bn", 64, 128, 192, 224, 256, fit=fit.hopper),
    climbed(Staged, "bn", 64, 128, 192, 256, fit=fit.staged),
    climbed(Split, "bn", 64, 128, 256, fit=fit.split),
)
TALLER = joined(
    climbed(Staged, "bm", 64, 128, fit=fit.staged), climbed(Skinny, "bm", 8, 16, 32, 64, 128, fit=fit.skinny)
)
DEEPER = joined(
    climbed(Staged, "bk", 32, 64, 128, fit=fit.rows),
    climbed(Hopper, "bk", 64, 128, fit=fit.hopper),
    climbed(Skinny, "bk", 64, 128, 256, fit=fit.skinny),
)
SLOTS = joined(
    climbed(Hopper, "stages", *range(2, _MOST_SLOTS + 1), fit=fit.hopper),
    climbed(Skinny, "stages", *range(2, 2 * _MOST_SLOTS + 1), fit=fit.skinny),
    climbed(Split, "stages", *range(2, _MOST_SLOTS + 1), fit=fit.split),
    climbed(Staged, "stages", *range(2, _MOST_SLOTS + 1), when=lambda design: design.stages > 1, fit=fit.staged),
)
MORE_SPLITS = climbed(Split, "splits", 2, 4, 8, fit=fit.split)


# -- from one kind of schedule to another -------------------------------------------------------------------


def _in_turn(design: Design) -> tuple[Design, ...]:
    match design:
        case Hopper(bm=128, cluster=(1,), pingpong=False, whole=False, persistent=True):
            return (evolve(design, bm=64, pingpong=True),)
        case _:
            return ()


def _together(design: Design) -> Design | None:
    match design:
        case Hopper(pingpong=True):
            return evolve(design, bm=128, pingpong=False, stages=min(design.stages, _slots(design)))
        case _:
            return None


def _slots(design: Hopper) -> int:
    fitted = fit.hopper(evolve(design, bm=128, pingpong=False))
    return design.stages if fitted is None else fitted.stages


PING_PONG = Transformation(_in_turn, _together)


def _for_few_rows(design: Design) -> tuple[Design, ...]:
    """From tiles of 64 columns, which are the 64 rows of the matrix unit afterwards."""
    match design:
        case Hopper(bn=64, cluster=(1,), pingpong=False, group=0, curve=0):
            made = (fit.skinny(Skinny(bm, bk, 2 * _MOST_SLOTS)) for bm in (8, 16, 32, 64) for bk in (64, 128, 256))
            return tuple(each for each in made if each is not None)
        case _:
            return ()


def _for_many_rows(design: Design) -> Design | None:
    return Hopper(bn=64, stages=_MOST_SLOTS) if isinstance(design, Skinny) else None


EXCHANGED = Transformation(_for_few_rows, _for_many_rows)


def _share_out(design: Design) -> tuple[Design, ...]:
    """From one block a tile to several, each with a part of K."""
    match design:
        case Hopper(bm=128, bk=bk, cluster=(1,), pingpong=False, group=0, curve=0) if design.bn in {64, 128, 256}:
            made = (fit.split(Split(128, design.bn, bk, design.stages, splits)) for splits in (2, 4, 8))
            return tuple(each for each in made if each is not None)
        case _:
            return ()


def _one_block(design: Design) -> Design | None:
    match design:
        case Split(bm=128):
            return fit.hopper(Hopper(bn=design.bn, bk=design.bk, stages=_MOST_SLOTS))
        case _:
            return None


SPLIT_K = Transformation(_share_out, _one_block)


def _specialised(design: Design) -> tuple[Design, ...]:
    """Two warpgroups that multiply and one that loads, in place of one and a warp."""
    match design:
        case Staged(tma=True) if design.bk * _ELEMENT == design.swizzle == _SPAN:
            made = fit.hopper(_bare(design.bn, design.stages, design.group, box=design.box))
            return () if made is None else (made,)
        case _:
            return ()


def _of_one_warpgroup(design: Design) -> Design | None:
    """With the same tile if one warpgroup can hold its sums, else with half of it."""
    match design:
        case Hopper(bn=bn, stages=stages, group=group, box=box) if design == _bare(bn, stages, group, box=box):
            made = Staged(128, bn, 64, stages, tma=True, swizzle=_SPAN, group=group, box=box)
            return fit.staged(made) or evolve(made, bm=64)
        case _:
            return None


def _bare(bn: int, stages: int, group: int, *, box: bool) -> Hopper:
    """What roles are left with when all that needs them is taken away."""
    return Hopper(bn=bn, stages=stages, group=group, box=box, flight=False, realloc=False, persistent=False)


SPECIALISED = Transformation(_specialised, _of_one_warpgroup)
