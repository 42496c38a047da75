"""Transformations of the Hopper schedules, and conversions between their kinds: staged, warp-specialised, split-K."""

from __future__ import annotations

from attrs import evolve

from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.search import fit_memory
from argus.search.transformation import Design, Transformation, combine, increase_field, set_field

_GROUPS = (4, 8, 16)
_CURVE = 16
_WIDE = 128
_FEWEST_STAGES, _MOST_STAGES = 2, 8
_LEAST_BK = 32
_SPLIT_BN = {64, 128, 256}
_ELEMENT, _SPAN = 2, 128


def _needs_several_buffers(design: Hopper) -> bool:
    """Whether the epilogue has more parts than buffers."""
    return design.box and design.bn > _WIDE and not design.pingpong


def _cooperative(design: Hopper) -> bool:
    """Whether warpgroups share a tile; only then may a block be non-persistent or in a cluster."""
    return not design.pingpong


def _increase_bk(design: Design) -> tuple[Design, ...]:
    """Double or quadruple bk with a half or a quarter of the stages: the ring keeps its size in bytes."""
    match design:
        case Hopper(bk=bk, stages=stages):
            deeper = ((to, stages * bk // to) for to in (64, 128) if to > bk)
            return tuple(evolve(design, bk=to, stages=slots) for to, slots in deeper if slots >= _FEWEST_STAGES)
        case _:
            return ()


def _decrease_bk(design: Design) -> Design | None:
    match design:
        case Hopper(bk=bk, stages=stages) if bk > _LEAST_BK and 2 * stages <= _MOST_STAGES:
            return evolve(design, bk=bk // 2, stages=2 * stages)
        case _:
            return None


GROUPED_ORDER = combine(
    set_field(Hopper, "group", *_GROUPS, when=lambda design: not design.curve), set_field(Staged, "group", *_GROUPS)
)
HILBERT_ORDER = set_field(Hopper, "curve", _CURVE, when=lambda design: not design.group)
_LEAST_BN = 64
"""Columns of the tiles that derivations begin with; no technique makes narrower ones."""
PERSISTENT = set_field(Hopper, "persistent", True, when=_cooperative, low=False)
REGISTER_REALLOCATION = set_field(Hopper, "realloc", True, low=False)
ASYNC_WGMMA = set_field(Hopper, "flight", True, low=False)
TMA_EPILOGUE = combine(
    set_field(Hopper, "box", True, low=False, when=lambda design: not design.whole, fit=fit_memory.hopper),
    set_field(Staged, "box", True, fit=fit_memory.staged),
)
FULL_TILE_EPILOGUE = set_field(Hopper, "whole", True, when=_needs_several_buffers, fit=fit_memory.hopper)
SINGLE_EPILOGUE_BUFFER = set_field(Hopper, "turns", 1, when=lambda design: design.box and not design.whole)
MORE_EPILOGUE_BUFFERS = set_field(Hopper, "turns", 3, 4, when=_needs_several_buffers, fit=fit_memory.hopper)
MULTICAST = set_field(Hopper, "cluster", (2, 1), (1, 2), (4, 1), (1, 4), when=_cooperative, fit=fit_memory.hopper)
LARGER_BN = combine(
    increase_field(
        Hopper, "bn", 64, 128, 192, 224, 256, when=lambda design: design.bn >= _LEAST_BN, fit=fit_memory.hopper
    ),
    increase_field(Staged, "bn", 64, 128, 192, 256, when=lambda design: design.bn >= _LEAST_BN, fit=fit_memory.staged),
    increase_field(Split, "bn", 16, 32, 64, 128, 256, fit=fit_memory.split),
)
LARGER_BM = combine(
    increase_field(Staged, "bm", 64, 128, fit=fit_memory.staged),
    increase_field(Split, "bm", 64, 128, when=lambda design: not design.swap_ab, fit=fit_memory.split),
    increase_field(Skinny, "bm", 8, 16, 32, 64, 128, fit=fit_memory.skinny),
)
LARGER_BK = combine(
    increase_field(Staged, "bk", 32, 64, 128, fit=fit_memory.rows),
    Transformation(_increase_bk, _decrease_bk),
    increase_field(Skinny, "bk", 64, 128, 256, fit=fit_memory.skinny),
)
MORE_STAGES = combine(
    increase_field(Hopper, "stages", *range(2, _MOST_STAGES + 1), fit=fit_memory.hopper),
    increase_field(Skinny, "stages", *range(2, 2 * _MOST_STAGES + 1), fit=fit_memory.skinny),
    increase_field(Split, "stages", *range(2, _MOST_STAGES + 1), fit=fit_memory.split),
    increase_field(
        Staged, "stages", *range(2, _MOST_STAGES + 1), when=lambda design: design.stages > 1, fit=fit_memory.staged
    ),
)
MORE_SPLITS = increase_field(Split, "splits", 2, 4, 8, fit=fit_memory.split)


# -- from one kind of schedule to another -------------------------------------------------------------------


def _to_ping_pong(design: Design) -> tuple[Design, ...]:
    match design:
        case Hopper(bm=128, cluster=(1,), pingpong=False, whole=False, persistent=True):
            return (evolve(design, bm=64, pingpong=True),)
        case _:
            return ()


def _to_cooperative(design: Design) -> Design | None:
    match design:
        case Hopper(pingpong=True):
            return evolve(design, bm=128, pingpong=False, stages=min(design.stages, _cooperative_stages(design)))
        case _:
            return None


def _cooperative_stages(design: Hopper) -> int:
    shared = fit_memory.hopper(evolve(design, bm=128, pingpong=False))
    return design.stages if shared is None else shared.stages


PING_PONG = Transformation(_to_ping_pong, _to_cooperative)


def _to_skinny(design: Design) -> tuple[Design, ...]:
    """From tiles of 64 columns, which become the M dimension (64) of wgmma."""
    match design:
        case Hopper(bn=64, cluster=(1,), pingpong=False, group=0, curve=0):
            made = (
                fit_memory.skinny(Skinny(bm, bk, 2 * _MOST_STAGES)) for bm in (8, 16, 32, 64) for bk in (64, 128, 256)
            )
            return tuple(each for each in made if each is not None)
        case _:
            return ()


def _from_skinny(design: Design) -> Design | None:
    return Hopper(bn=64, stages=_MOST_STAGES) if isinstance(design, Skinny) else None


SWAP_AB = Transformation(_to_skinny, _from_skinny)


def _to_split_k(design: Design) -> tuple[Design, ...]:
    """From one block per tile to a cluster of blocks that splits K."""
    match design:
        case Hopper(bm=128, cluster=(1,), pingpong=False, group=0, curve=0) if design.bn in _SPLIT_BN:
            first = Split(128, design.bn, design.bk, design.stages)
        case Skinny():
            first = Split(64, design.bm, design.bk, design.stages, swap_ab=True)
        case _:
            return ()
    made = (fit_memory.split(evolve(first, splits=splits)) for splits in (2, 4, 8))
    return tuple(each for each in made if each is not None)


def _from_split_k(design: Design) -> Design | None:
    """With as many stages as fit once the partial sums' memory is free."""
    match design:
        case Split(swap_ab=True):
            return fit_memory.skinny(Skinny(design.bn, design.bk, 2 * _MOST_STAGES))
        case Split(bm=128):
            return fit_memory.hopper(Hopper(bn=design.bn, bk=design.bk, stages=_MOST_STAGES))
        case Split(bk=64):
            return Staged(64, design.bn, design.bk, design.stages, tma=True, swizzle=_SPAN)
        case _:
            return None


SPLIT_K = Transformation(_to_split_k, _from_split_k)


def _to_warp_specialised(design: Design) -> tuple[Design, ...]:
    """From one warpgroup and a TMA warp to one producer and two consumer warpgroups."""
    match design:
        case Staged(tma=True) if design.bk * _ELEMENT == design.swizzle == _SPAN:
            made = fit_memory.hopper(_minimal_hopper(design.bn, design.stages, design.group, box=design.box))
            return () if made is None else (made,)
        case _:
            return ()


def _to_one_warpgroup(design: Design) -> Design | None:
    """With the same tile if one warpgroup can hold the accumulators, else with half of its rows."""
    match design:
        case Hopper(bn=bn, stages=stages, group=group, box=box) if design == _minimal_hopper(
            bn, stages, group, box=box
        ):
            made = Staged(128, bn, 64, stages, tma=True, swizzle=_SPAN, group=group, box=box)
            return fit_memory.staged(made) or evolve(made, bm=64)
        case _:
            return None


def _minimal_hopper(bn: int, stages: int, group: int, *, box: bool) -> Hopper:
    """The warp-specialised schedule without any technique that depends on roles."""
    return Hopper(bn=bn, stages=stages, group=group, box=box, flight=False, realloc=False, persistent=False)


WARP_SPECIALISATION = Transformation(_to_warp_specialised, _to_one_warpgroup)
