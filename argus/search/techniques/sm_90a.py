"""Techniques of the schedules for Hopper that have roles, rings and clusters."""

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.search import fit_memory
from argus.search.transformation import Design, Transformation, climbed, joined, switched

_BANDS = (4, 8, 16)
_CURVE = 16
_WIDE = 128
_FEWEST_SLOTS, _MOST_SLOTS = 2, 8
_LEAST_DEPTH = 32
_SHARED_COLUMNS = {64, 128, 256}
_ELEMENT, _SPAN = 2, 128


def _boxed_wide(design: Hopper) -> bool:
    """Whether a tile has more parts than it has boxes."""
    return design.box and design.bn > _WIDE and not design.pingpong


def _together(design: Hopper) -> bool:
    """Whether warpgroups share tiles: only then may a block end with one, or be one of a cluster."""
    return not design.pingpong


def _deeper(design: Design) -> tuple[Design, ...]:
    """Half as many slots of twice the depth, or a quarter: the ring keeps its bytes."""
    match design:
        case Hopper(bk=bk, stages=stages):
            deeper = ((to, stages * bk // to) for to in (64, 128) if to > bk)
            return tuple(evolve(design, bk=to, stages=slots) for to, slots in deeper if slots >= _FEWEST_SLOTS)
        case _:
            return ()


def _shallower(design: Design) -> Design | None:
    match design:
        case Hopper(bk=bk, stages=stages) if bk > _LEAST_DEPTH and 2 * stages <= _MOST_SLOTS:
            return evolve(design, bk=bk // 2, stages=2 * stages)
        case _:
            return None


SUPER_TILES = joined(
    switched(Hopper, "group", *_BANDS, when=lambda design: not design.curve), switched(Staged, "group", *_BANDS)
)
CURVE = switched(Hopper, "curve", _CURVE, when=lambda design: not design.group)
PERSISTENT = switched(Hopper, "persistent", True, when=_together, low=False)
REALLOCATION = switched(Hopper, "realloc", True, low=False)
IN_FLIGHT = switched(Hopper, "flight", True, low=False)
BOX = joined(
    switched(Hopper, "box", True, low=False, when=lambda design: not design.whole, fit=fit_memory.hopper),
    switched(Staged, "box", True, fit=fit_memory.staged),
)
WHOLE = switched(Hopper, "whole", True, when=_boxed_wide, fit=fit_memory.hopper)
ONE_BOX = switched(Hopper, "turns", 1, when=lambda design: design.box and not design.whole)
MORE_BOXES = switched(Hopper, "turns", 3, 4, when=_boxed_wide, fit=fit_memory.hopper)
MULTICAST = switched(Hopper, "cluster", (2, 1), (1, 2), when=_together, fit=fit_memory.hopper)
WIDER = joined(
    climbed(Hopper, "bn", 64, 128, 192, 224, 256, fit=fit_memory.hopper),
    climbed(Staged, "bn", 64, 128, 192, 256, fit=fit_memory.staged),
    climbed(Split, "bn", 16, 32, 64, 128, 256, fit=fit_memory.split),
)
TALLER = joined(
    climbed(Staged, "bm", 64, 128, fit=fit_memory.staged),
    climbed(Split, "bm", 64, 128, when=lambda design: not design.swap_ab, fit=fit_memory.split),
    climbed(Skinny, "bm", 8, 16, 32, 64, 128, fit=fit_memory.skinny),
)
DEEPER = joined(
    climbed(Staged, "bk", 32, 64, 128, fit=fit_memory.rows),
    Transformation(_deeper, _shallower),
    climbed(Skinny, "bk", 64, 128, 256, fit=fit_memory.skinny),
)
SLOTS = joined(
    climbed(Hopper, "stages", *range(2, _MOST_SLOTS + 1), fit=fit_memory.hopper),
    climbed(Skinny, "stages", *range(2, 2 * _MOST_SLOTS + 1), fit=fit_memory.skinny),
    climbed(Split, "stages", *range(2, _MOST_SLOTS + 1), fit=fit_memory.split),
    climbed(Staged, "stages", *range(2, _MOST_SLOTS + 1), when=lambda design: design.stages > 1, fit=fit_memory.staged),
)
MORE_SPLITS = climbed(Split, "splits", 2, 4, 8, fit=fit_memory.split)


# -- from one kind of schedule to another -------------------------------------------------------------------


def _in_turn(design: Design) -> tuple[Design, ...]:
    match design:
        case Hopper(bm=128, cluster=(1,), pingpong=False, whole=False, persistent=True):
            return (evolve(design, bm=64, pingpong=True),)
        case _:
            return ()


def _with_shared_tiles(design: Design) -> Design | None:
    match design:
        case Hopper(pingpong=True):
            return evolve(design, bm=128, pingpong=False, stages=min(design.stages, _slots(design)))
        case _:
            return None


def _slots(design: Hopper) -> int:
    shared = fit_memory.hopper(evolve(design, bm=128, pingpong=False))
    return design.stages if shared is None else shared.stages


PING_PONG = Transformation(_in_turn, _with_shared_tiles)


def _for_few_rows(design: Design) -> tuple[Design, ...]:
    """From tiles of 64 columns, which are the 64 rows of the matrix unit afterwards."""
    match design:
        case Hopper(bn=64, cluster=(1,), pingpong=False, group=0, curve=0):
            made = (
                fit_memory.skinny(Skinny(bm, bk, 2 * _MOST_SLOTS)) for bm in (8, 16, 32, 64) for bk in (64, 128, 256)
            )
            return tuple(each for each in made if each is not None)
        case _:
            return ()


def _for_many_rows(design: Design) -> Design | None:
    return Hopper(bn=64, stages=_MOST_SLOTS) if isinstance(design, Skinny) else None


EXCHANGED = Transformation(_for_few_rows, _for_many_rows)


def _share_out(design: Design) -> tuple[Design, ...]:
    """From one block a tile to several, each with a part of K."""
    match design:
        case Hopper(bm=128, cluster=(1,), pingpong=False, group=0, curve=0) if design.bn in _SHARED_COLUMNS:
            first = Split(128, design.bn, design.bk, design.stages)
        case Skinny():
            first = Split(64, design.bm, design.bk, design.stages, swap_ab=True)
        case _:
            return ()
    made = (fit_memory.split(evolve(first, splits=splits)) for splits in (2, 4, 8))
    return tuple(each for each in made if each is not None)


def _one_block(design: Design) -> Design | None:
    """With as many slots as the memory for sums has room for, too."""
    match design:
        case Split(swap_ab=True):
            return fit_memory.skinny(Skinny(design.bn, design.bk, 2 * _MOST_SLOTS))
        case Split(bm=128):
            return fit_memory.hopper(Hopper(bn=design.bn, bk=design.bk, stages=_MOST_SLOTS))
        case Split(bk=64):
            return Staged(64, design.bn, design.bk, design.stages, tma=True, swizzle=_SPAN)
        case _:
            return None


SPLIT_K = Transformation(_share_out, _one_block)


def _specialised(design: Design) -> tuple[Design, ...]:
    """Two warpgroups that multiply and one that loads, in place of one and a warp."""
    match design:
        case Staged(tma=True) if design.bk * _ELEMENT == design.swizzle == _SPAN:
            made = fit_memory.hopper(_bare(design.bn, design.stages, design.group, box=design.box))
            return () if made is None else (made,)
        case _:
            return ()


def _of_one_warpgroup(design: Design) -> Design | None:
    """With the same tile if one warpgroup can hold its sums, else with half of it."""
    match design:
        case Hopper(bn=bn, stages=stages, group=group, box=box) if design == _bare(bn, stages, group, box=box):
            made = Staged(128, bn, 64, stages, tma=True, swizzle=_SPAN, group=group, box=box)
            return fit_memory.staged(made) or evolve(made, bm=64)
        case _:
            return None


def _bare(bn: int, stages: int, group: int, *, box: bool) -> Hopper:
    """What roles are left with when all that needs them is taken away."""
    return Hopper(bn=bn, stages=stages, group=group, box=box, flight=False, realloc=False, persistent=False)


SPECIALISED = Transformation(_specialised, _of_one_warpgroup)
