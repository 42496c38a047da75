import json
from math import log

import pytest

from argus.core.cost.machine import MACHINES
from argus.core.cost.occupancy import Compiled, occupancy
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.split import Split
from argus.search.designs.designs import kernel_of
from argus.search.designs.space import situation
from argus.search.designs.wave_quantisation import block_shape, fits, occupancy_features, problem_size
from argus.search.problems.problem import Gemm
from argus.search.tuning.candidates import design_space
from benchmarks.recorded import TABLES, table

SMALL = Gemm(2048, 2048, 2048, "bf16", "gfx942")
SHORT = Cdna3Staged(bk=64, run=8, vector=8, swizzle=True)


@pytest.mark.share(3)
def test_resident_blocks_agree_with_compiler_reports() -> None:
    """Every tenth design of MI300X; a few may differ, where registers are underestimated."""
    machine, designs = MACHINES["gfx942"], design_space("gfx942")
    points = json.loads((TABLES / "gfx942.json").read_text(encoding="utf-8"))["points"]
    ready = [each for each in points if each["state"] == "ready"][::10]
    equal = 0
    for point in ready:
        design = designs[point["name"]]
        report = Compiled(point["registers"], point["spills"], point["shared"])
        equal += block_shape(design).resident(machine) == occupancy(kernel_of(design), machine, report).blocks

    assert len(ready) > 50
    assert equal >= 0.9 * len(ready)


def test_tiles_that_all_find_room_are_one_round() -> None:
    """1,024 tiles on 304 CUs: four resident blocks with one stage, two with two stages."""
    one, two = (
        occupancy_features(SMALL, SHORT),
        occupancy_features(SMALL, Cdna3Staged(bk=64, run=8, vector=8, swizzle=True, buffers=2)),
    )

    assert (one["one round"], two["one round"]) == (1.0, 0.0)
    assert one["last round"] == 0.0
    assert two["last round"] == pytest.approx(log(1024 / (2 * 304 * 2)))
    assert one["together"] == 2 * two["together"] == 0.5
    assert one["bytes in flight"] == two["bytes in flight"]


@pytest.mark.parametrize(
    ("bk", "run", "swizzle", "conflict_degree"),
    [(64, 4, False, 16), (64, 8, False, 8), (32, 8, False, 4), (64, 4, True, 1)],
)
def test_rows_without_a_swizzle_meet_in_banks(bk: int, run: int, swizzle: bool, conflict_degree: int) -> None:
    assert block_shape(Cdna3Staged(bk=bk, run=run, swizzle=swizzle)).conflict_degree == conflict_degree


def test_a_swapped_tile_has_rows_and_columns_exchanged() -> None:
    assert (block_shape(Split(bm=128, bn=16, swap_ab=True)).rows, block_shape(Split(bm=128, bn=16)).rows) == (16, 128)


def test_a_persistent_block_is_alone() -> None:
    assert block_shape(Hopper(bm=64, bn=64, stages=2)).resident(MACHINES["sm_90a"]) == 1
    assert block_shape(Hopper(bm=64, bn=64, stages=2, persistent=False)).resident(MACHINES["sm_90a"]) > 1


def test_a_problem_of_one_tile_a_processor_has_size_0() -> None:
    assert problem_size(Gemm(128 * 4, 128 * 33, 64, "bf16", "sm_90a")) == 0.0


@pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
def test_only_designs_that_the_gate_refuses_do_not_fit(target: str) -> None:
    points = table(TABLES / f"{target}.json").points
    without = [name for name, each in design_space(target).items() if not fits(each, MACHINES[target])]

    assert without
    assert not any(points[name].ready for name in without if name in points)
    options = {each.name for each in situation(Gemm(4096, 4096, 4096, "bf16", target)).options}
    assert not options & set(without)
