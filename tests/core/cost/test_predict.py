"""What the model says of kernels: what waits, what is busy, and that better kernels are told from worse ones."""

from __future__ import annotations

from math import inf

import pytest
from attrs import asdict, evolve

from argus.core.cost import MACHINES, Compiled, predict
from argus.core.ir import Await, Kernel, Wait
from argus.core.layout import Swizzle
from argus.kernels.config_names import name_of
from argus.kernels.gemm import gemm
from argus.kernels.schedules.cdna3 import Cdna3
from argus.kernels.schedules.hopper import Hopper
from tests.core.cost import kernels

CUBE = {"M": 4096, "N": 4096, "K": 4096}


def microseconds(name: str) -> float:
    return predict(gemm.trace(name), CUBE).microseconds


def of(config: Hopper | Cdna3) -> Kernel:
    return gemm.instance(config, name_of(config))


@pytest.mark.share(3)
@pytest.mark.parametrize("bn", [64, 128, 256])
def test_more_stages_are_never_slower(bn: int) -> None:
    times = [predict(of(Hopper(bn=bn, stages=stages)), CUBE).microseconds for stages in (2, 3, 4)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.2 * times[-1]  # two slots do not hide the way from memory


def test_waits_that_a_ring_hides() -> None:
    def waiting(stages: int) -> float:
        found = predict(kernels.product(stages, pending=0), {"M": 64, "N": 128, "K": 8192})
        return sum(each.microseconds for each in found.exposed if each.group == "math" and isinstance(each.stmt, Await))

    times = [waiting(stages) for stages in (1, 2, 3, 4, 6)]
    assert times == sorted(times, reverse=True)


def test_a_wait_right_after_its_product_is_exposed() -> None:
    def waiting(pending: int) -> float:
        found = predict(kernels.product(6, pending=pending), {"M": 64, "N": 128, "K": 8192})
        return sum(each.microseconds for each in found.exposed if isinstance(each.stmt, Wait))

    assert waiting(0) > waiting(1)
    late, now = (predict(kernels.product(6, pending=p), {"M": 64, "N": 128, "K": 8192}) for p in (1, 0))
    assert late.microseconds <= now.microseconds


def test_conflicts_cost_time() -> None:
    sizes = {"M": 64 * 304, "N": 64, "K": 4096}
    plain, swizzled = (predict(kernels.staged(each), sizes) for each in (None, Swizzle(2, 3, 3)))
    assert plain.microseconds > swizzled.microseconds
    assert dict(plain.parts)["shared"] == pytest.approx(2.5 * dict(swizzled.parts)["shared"])


def test_the_matrix_unit_is_the_limit_of_large_cubes() -> None:
    found = predict(gemm.trace("clustered_bands"), CUBE)
    assert found.bottleneck == "tensor"
    assert dict(found.parts)["tensor"] > 2 * 4096**3 / 989e6
    assert 150 < found.microseconds < 220  # 181 microseconds have been measured


def test_single_elements_are_slower_than_boxes() -> None:
    assert microseconds("narrow") > 3 * microseconds("cooperative")


def test_overlap_pays_on_the_other_machine() -> None:
    assert microseconds("cdna3") > microseconds("cdna3_pingpong")
    assert dict(predict(gemm.trace("cdna3"), CUBE).parts)["tensor"] >= 2 * 4096**3 / 1307e6


def test_small_tiles_read_more() -> None:
    small, large = (predict(of(Cdna3(bm=bm, bn=bm)), CUBE) for bm in (64, 128))
    assert dict(small.parts)["memory"] > 1.5 * dict(large.parts)["memory"]


def test_occupancy_hides_the_waits_of_one_block() -> None:
    kernel = gemm.trace("narrow")
    one, three = (predict(kernel, CUBE, Compiled(registers=count)) for count in (255, 168))
    assert (one.occupancy.blocks, three.occupancy.blocks) == (2, 3)
    assert one.microseconds > three.microseconds


def test_products_that_wait_for_one_another() -> None:
    kernel = gemm.trace("cooperative")
    free, serialised = (predict(kernel, CUBE, Compiled(168, serialised=each)) for each in (False, True))
    assert serialised.microseconds > free.microseconds


def test_moves_between_registers_take_a_schedulers_time() -> None:
    kernel = of(Cdna3(bm=256, bn=256))
    free, moving = (predict(kernel, CUBE, Compiled(512, moves_per_mma=each)) for each in (0.0, 2.0))
    products = dict(free.parts)["tensor"]
    assert moving.microseconds > free.microseconds
    more = dict(moving.parts)["issue"] - dict(free.parts)["issue"]
    heat = 1 + (MACHINES["gfx942"].fitted.power_slowdown - 1) * 256 / 304  # of 256 tiles
    assert more == pytest.approx(products / heat * 2 * 4 / 32)  # two of 4 cycles beside each of 32


def test_spills_are_noted() -> None:
    found = predict(gemm.trace("cooperative"), CUBE, Compiled(168, spilled=64))
    assert any("spills 64 bytes per thread" in note for note in found.notes)


def test_a_ring_with_too_few_stages_deadlocks() -> None:
    found = predict(kernels.product(1, pending=1), {"M": 64, "N": 128, "K": 256})
    assert found.microseconds == inf
    assert any("deadlock at" in note for note in found.notes)


def test_a_long_loop_is_extrapolated() -> None:
    kernel = gemm.trace("skinny")
    one, four = (predict(kernel, {"M": rows, "N": 2112, "K": 1024}).microseconds for rows in (4096, 16_384))
    around = MACHINES["sm_90a"].fitted.launch_us
    assert four - around == pytest.approx(4 * (one - around), rel=0.02)


def test_data_dependence_is_noted() -> None:
    found = predict(kernels.counted.trace(), {"M": 64, "R": 1})
    assert any("data-dependent" in note for note in found.notes)


def test_every_constant_is_positive() -> None:
    for machine in MACHINES.values():
        assert all(value >= 0 for value in asdict(machine.fitted).values())


def test_a_faster_machine_is_faster() -> None:
    row = MACHINES["sm_90a"]
    kernel = gemm.trace("cooperative")
    assert (
        predict(kernel, CUBE, machine=evolve(row, clock=2 * row.clock)).microseconds
        < predict(kernel, CUBE).microseconds
    )
