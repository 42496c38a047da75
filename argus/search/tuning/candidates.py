"""Which configurations of the GEMM family a search tries: those shipped, and a neighbourhood of them; and all that a
planner may walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve

from argus.kernels.config_names import name_of
from argus.kernels.gemm import CONFIGS, Config
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.search.tuning import space_gfx942, space_sm_90a

_ELEMENT, _SLICE = 2, 64
_SHARED = 232_448
"""Bytes of shared memory that a block may have on an H100 or H200."""
_AROUND = 2_048
"""Bytes of it for barriers, and for tiles to begin at multiples of 1024."""
_MOST_STAGES = 8
_COLUMNS = (256, 224, 192, 160, 128, 64)
_CLUSTERS = ((2, 1), (1,), (1, 2))
_BANDS = (8, 0)
_CURVE = 16
_SUM = 4
_ROWS_OF_A = (80, 112, 144, 208)
"""Of a tile of C^T, which need not be powers of two."""
_WIDE = 128
"""Columns from which a tile leaves through more boxes than two if it leaves whole."""


def tuning_candidates(target: str = "sm_90a") -> dict[str, Config]:
    """Configurations by name; one that is shipped has the name that it is shipped by."""
    found: dict[Config, str] = {each: name for name, each in CONFIGS.items() if each.target.name == target}
    if target == "sm_90a":
        for each in (*_hopper(), *_pingpong(), *_skinny(), *_split(), *_split_swapped()):
            found.setdefault(each, name_of(each))
    return {name: each for each, name in found.items()}


def design_space(target: str = "sm_90a") -> dict[str, Config]:
    """All points of a target by name, good and bad: what a search tries, and what lies before it."""
    points: dict[Config, str] = {each: name for name, each in tuning_candidates(target).items()}
    walked = _SPACES[target]
    for each in (point for axis in walked for point in axis()):
        points.setdefault(each, name_of(each))
    return {name: each for each, name in points.items()}


_SPACES: Mapping[str, tuple[Callable[[], Iterator[Config]], ...]] = {
    "sm_90a": (space_sm_90a.staged, space_sm_90a.hopper),
    "gfx942": (space_gfx942.staged, space_gfx942.shipped_kinds, space_gfx942.in_accumulation_registers),
}


def _hopper() -> Iterator[Hopper]:
    """Tiles of 128 rows in each order, as many stages as memory has room for; and one less of the usual ones."""
    for bn in _COLUMNS:
        for cluster in _CLUSTERS:
            for group in _BANDS:
                for whole in (False, True) if bn > _WIDE else (False,):
                    made = Hopper(bn=bn, cluster=cluster, group=group, whole=whole)
                    yield evolve(made, stages=most_stages(made))
            for whole in (False, True) if bn > _WIDE else ():
                made = Hopper(bn=bn, cluster=cluster, curve=_CURVE, whole=whole)
                yield evolve(made, stages=most_stages(made))
        fewer = Hopper(bn=bn, cluster=(2, 1), group=8)
        yield evolve(fewer, stages=most_stages(fewer) - 1)


def _pingpong() -> Iterator[Hopper]:
    for bn in (256, 192, 128):
        made = Hopper(bm=64, bn=bn, pingpong=True, group=8)
        yield evolve(made, stages=most_stages(made))


def _skinny() -> Iterator[Skinny]:
    for bm in (8, 16, 32, 64, 128):
        for bk in (64, 128, 256):
            stages = (_SHARED - _AROUND) // ((bm + 64) * bk * _ELEMENT)
            yield Skinny(bm=bm, bk=bk, stages=min(2 * _MOST_STAGES, stages))
    for bm in _ROWS_OF_A:
        stages = (_SHARED - _AROUND) // ((bm + 128) * _SLICE * _ELEMENT)
        yield Skinny(bm=bm, bk=_SLICE, stages=min(_MOST_STAGES, stages), bn=128)


def _split() -> Iterator[Split]:
    """Tiles whose sums lie beside the slots: as many of these as are left, if they are two or more."""
    for bm in (64, 128):
        for bn in (64, 128, 256):
            for splits in (2, 4, 8):
                left = _SHARED - _AROUND - bm * bn * _SUM
                stages = min(_MOST_STAGES, left // ((bm + bn) * _SLICE * _ELEMENT))
                if stages > 1:
                    yield Split(bm=bm, bn=bn, bk=_SLICE, stages=stages, splits=splits)


def _split_swapped() -> Iterator[Split]:
    """The same of C^T, with as many slots as leave room for one block a multiprocessor, or for two."""
    for bm in (64, 128):
        for bn in (16, 32, 64, *_ROWS_OF_A):
            for splits in (2, 3, 4, 8):
                for blocks in (1, 2):
                    left = _SHARED // blocks - _AROUND - bm * bn * _SUM
                    stages = min(2 * _MOST_STAGES, left // ((bm + bn) * _SLICE * _ELEMENT))
                    if bn % (8 * splits) == 0 and stages > 2:
                        yield Split(bm=bm, bn=bn, bk=_SLICE, stages=stages, splits=splits, swap_ab=True)


def most_stages(config: Hopper) -> int:
    """Slots that fit beside the boxes that tiles leave through: 64 rows each, for two warpgroups."""
    width = 64 if config.bn % 64 == 0 else 32
    boxes = config.bn // width if config.whole else min(2, config.bn // width)
    left = _SHARED - _AROUND - 2 * boxes * 64 * width * _ELEMENT
    return min(_MOST_STAGES, left // ((config.bm + config.bn) * config.bk * _ELEMENT))
