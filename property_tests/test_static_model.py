"""Property: the static model is monotone: more stages are never slower, more work never faster, units fit in time."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.core.cost import MACHINES, Compiled, counts, occupancy, predict
from argus.core.ir import Kernel
from argus.core.layout import Swizzle
from argus.kernels.config_names import name_of
from argus.kernels.gemm import CONFIGS, Config, gemm
from argus.kernels.schedules.cdna3 import Cdna3
from argus.kernels.schedules.hopper import Hopper
from argus.language import (
    Tensor,
    bf16,
    block_id,
    copy,
    ds_read_b128,
    ds_write_b128,
    gfx942,
    kernel,
    lds,
    registers,
    shared,
    spread,
    sync,
)
from argus.policy.bounds import CEILINGS, bounds
from argus.policy.bounds import gemm as work_of
from property_tests.depth import examples

FEW = settings(max_examples=examples(5))
SLACK = 1.01
"""Tolerance: with one more stage, requests begin earlier and may reach a unit in another order."""


@frozen
class Sizes:
    m: int
    n: int
    k: int

    @property
    def named(self) -> dict[str, int]:
        return {"M": self.m, "N": self.n, "K": self.k}


def sizes() -> st.SearchStrategy[Sizes]:
    eights = st.integers(1, 96).map(lambda each: 8 * each)
    return st.builds(Sizes, st.integers(1, 768), eights, eights)


@cache
def of(config: Config) -> Kernel:
    return gemm.instance(config, name_of(config))


def microseconds(config: Config, problem: Sizes) -> float:
    return predict(of(config), problem.named).microseconds


@pytest.mark.share(3)
@FEW
@given(sizes(), st.sampled_from([64, 128, 192]), st.booleans())
def test_another_slot_is_never_slower(problem: Sizes, bn: int, pingpong: bool) -> None:
    bm = 64 if pingpong else 128
    times = [microseconds(Hopper(bm=bm, bn=bn, stages=stages, pingpong=pingpong), problem) for stages in (2, 3, 4)]
    assert all(more <= less * SLACK for less, more in pairwise(times)), times


@FEW
@given(sizes(), st.sampled_from(sorted(CONFIGS)))
def test_units_are_busy_within_the_time_that_all_takes(problem: Sizes, name: str) -> None:
    found = predict(gemm.trace(name), problem.named)
    assert all(0 <= part <= found.microseconds for _, part in found.parts)
    assert all(each.microseconds >= 0 for each in found.exposed)


@FEW
@given(sizes(), st.sampled_from(sorted(CONFIGS)))
def test_nothing_is_faster_than_physics(problem: Sizes, name: str) -> None:
    kernel = gemm.trace(name)
    bound = bounds(work_of(problem.m, problem.n, problem.k), CEILINGS[kernel.target.name])
    assert predict(kernel, problem.named).microseconds >= bound.least


@pytest.mark.share(3)
@FEW
@given(sizes(), st.sampled_from(sorted(CONFIGS)), st.integers(2, 4))
def test_more_of_k_takes_longer(problem: Sizes, name: str, factor: int) -> None:
    kernel, whole = gemm.trace(name), 512 * -(-problem.k // 512)  # K is a multiple of the stages
    shorter, longer = ({**problem.named, "K": whole * times} for times in (1, factor))
    assert predict(kernel, longer).microseconds >= predict(kernel, shorter).microseconds
    machine = MACHINES[kernel.target.name]
    short, long = (counts(kernel, each, machine).total for each in (shorter, longer))
    assert long.products >= short.products
    assert long.loaded >= short.loaded


@FEW
@given(st.integers(16, 512), st.integers(16, 512), st.sampled_from(["cdna3", "narrow", "skinny"]))
def test_more_registers_leave_room_for_no_more_blocks(first: int, second: int, name: str) -> None:
    kernel = gemm.trace(name)
    machine = MACHINES[kernel.target.name]
    few, many = (occupancy(kernel, machine, Compiled(each)).blocks for each in sorted((first, second)))
    assert few >= many >= 1


@FEW
@given(sizes(), st.sampled_from([64, 128]), st.sampled_from([32, 64]))
def test_larger_tiles_of_a_compute_unit_read_no_more(problem: Sizes, bm: int, bk: int) -> None:
    tiles = [of(Cdna3(bm=bm, bn=bn, bk=bk)) for bn in (64, 128)]
    small, large = (counts(each, problem.named, MACHINES["gfx942"]).total for each in tiles)
    assert small.loaded / 64 >= large.loaded / 128 * 0.99  # bytes per column


SWIZZLES = st.builds(Swizzle, st.integers(0, 3), st.just(3), st.integers(3, 5))


@cache
def through_shared(swizzle: Swizzle, columns: int) -> Kernel:
    """Write rows in order, and read fragments of 16 rows."""

    @kernel(target=gfx942, threads=64)
    def moved(A: Tensor["M N", bf16]) -> None:
        by = spread((64, columns), threads=64, vector=8)
        held = shared(bf16, (64, columns), swizzle=swizzle)
        x = registers(bf16, by)
        (m,) = block_id((A.shape[0],))
        copy(A.tile((64, columns), (m, 0)), x, edge=0)
        copy(x, held, via=ds_write_b128)
        lds.wait(0)
        sync()
        copy(held, x, via=ds_read_b128)
        lds.wait(0)

    return moved.trace()


@FEW
@given(SWIZZLES, st.sampled_from([32, 64]))
def test_conflicts_never_pay(swizzle: Swizzle, columns: int) -> None:
    found = counts(through_shared(swizzle, columns), {"M": 64, "N": columns}, MACHINES["gfx942"])
    assert found.total.shared >= found.total.unconflicted > 0
    best = counts(through_shared(Swizzle(3, 3, 3), columns), {"M": 64, "N": columns}, MACHINES["gfx942"])
    times = [
        predict(through_shared(each, columns), {"M": 64 * 304, "N": columns}).microseconds
        for each in (swizzle, Swizzle(3, 3, 3))
    ]
    if found.total.shared >= best.total.shared:
        assert times[0] >= times[1]
