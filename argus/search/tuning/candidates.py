"""Enumerates GEMM configurations: the autotuner's candidates, and the larger search space of the planners."""

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
"""Most bytes of shared memory per block on an H100 or H200."""
_AROUND = 2_048
"""Bytes of it for mbarriers and for aligning tiles to 1024 bytes."""
_MOST_STAGES = 8
_COLUMNS = (256, 224, 192, 160, 128, 64)
_CLUSTERS = ((2, 1), (1,), (1, 2))
_BANDS = (8, 0)
_CURVE = 16
_SUM = 4
_ROWS_OF_A = (80, 112, 144, 208)
"""Row counts of tiles of C^T; they need not be powers of two."""
_WIDE = 128
"""Columns above which a full-tile epilogue needs more than two buffers."""


def tuning_candidates(target: str = "sm_90a") -> dict[str, Config]:
    """The autotuner's configurations by name; shipped ones have their shipped names."""
    found: dict[Config, str] = {each: name for name, each in CONFIGS.items() if each.target.name == target}
    if target == "sm_90a":
        for each in (*_hopper(), *_pingpong(), *_skinny(), *_split(), *_split_swapped()):
            found.setdefault(each, name_of(each))
    return {name: each for each, name in found.items()}


def design_space(target: str = "sm_90a") -> dict[str, Config]:
    """The planners' search space by name: the candidates, and all configurations on the way to them, good and bad."""
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
    """Tiles of 128 rows in each tile order with as many stages as fit; also one stage less for the usual ones."""
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
    """Split-K tiles with as many stages as fit besides the partial sums, if at least two."""
    for bm in (64, 128):
        for bn in (64, 128, 256):
            for splits in (2, 4, 8):
                left = _SHARED - _AROUND - bm * bn * _SUM
                stages = min(_MOST_STAGES, left // ((bm + bn) * _SLICE * _ELEMENT))
                if stages > 1:
                    yield Split(bm=bm, bn=bn, bk=_SLICE, stages=stages, splits=splits)


def _split_swapped() -> Iterator[Split]:
    """The same for C^T (swapped operands), with as many stages as allow one or two resident blocks per SM."""
    for bm in (64, 128):
        for bn in (16, 32, 64, *_ROWS_OF_A):
            for splits in (2, 3, 4, 8):
                for blocks in (1, 2):
                    left = _SHARED // blocks - _AROUND - bm * bn * _SUM
                    stages = min(2 * _MOST_STAGES, left // ((bm + bn) * _SLICE * _ELEMENT))
                    if bn % (8 * splits) == 0 and stages > 2:
                        yield Split(bm=bm, bn=bn, bk=_SLICE, stages=stages, splits=splits, swap_ab=True)


def most_stages(config: Hopper) -> int:
    """Stages that fit besides the epilogue buffers of 64 rows for each of two warpgroups."""
    width = 64 if config.bn % 64 == 0 else 32
    boxes = config.bn // width if config.whole else min(2, config.bn // width)
    left = _SHARED - _AROUND - 2 * boxes * 64 * width * _ELEMENT
    return min(_MOST_STAGES, left // ((config.bm + config.bn) * config.bk * _ELEMENT))
