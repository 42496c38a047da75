"""The simulator on a few operations, whose times are worked out by hand."""

from __future__ import annotations

import pytest

from argus.core.cost.dies import MI300X_DIES
from argus.interp.gfx942.timing.operations import Operation
from argus.interp.gfx942.timing.simulate import Rates, Resource, combined, simulate

RATES = Rates(near=64.0, far=32.0, memory=16.0)
FITTED = MI300X_DIES.machine.fitted
END = Operation("end", 99)


def run(*waves: list[Operation], rates: Rates = RATES) -> tuple[float, dict[tuple[Resource, int], float]]:
    found = simulate([[[*wave, END] for wave in waves]], MI300X_DIES, rates)
    return found.cycles, dict(found.path)


def test_products_of_one_simd_follow_each_other_and_vector_instructions_run_beside_them() -> None:
    product, added = Operation("matrix", 1, 32.0), Operation("vector", 2, 4.0)

    assert run([product] * 4)[0] == 3 * 32 + 4
    assert run([product, added, added, product])[0] == 32 + 4
    assert run([product, added, added, product, *[added] * 9])[0] == 32 + 4 + 9 * 4


def test_waves_are_dealt_out_to_four_simds() -> None:
    product = Operation("matrix", 1, 32.0)

    assert run(*[[product] * 4] * 4)[0] == 3 * 32 + 4
    assert run(*[[product] * 4] * 8)[0] == 7 * 32 + 4


def test_the_wave_of_higher_priority_goes_first() -> None:
    product, high = Operation("matrix", 1, 32.0), Operation("priority", 2, priority=1)
    idle = [Operation("scalar", 0)] * 3
    # Wave 4 shares the SIMD of wave 0: with priority it takes its turn as soon as there is one.
    late = [*idle[1:], high, product]
    found = simulate([[[product] * 3 + [END], *[[END]] * 3, [*late, Operation("barrier", 5), END]]], MI300X_DIES, RATES)

    assert found.cycles == 3 * 32 + 4
    assert found.path["tensor", 1] > 0


def test_a_wait_counts_operations_in_order() -> None:
    read, first, all_of = Operation("lds", 1, 8.0), Operation("wait", 2, local=1), Operation("wait", 3, local=0)
    latency = MI300X_DIES.machine.shared_latency

    assert run([read, read, first])[0] == pytest.approx(16 + latency)  # the second still has to end
    assert run([read, read, first, Operation("vector", 4, 4.0)])[1]["wait for LDS", 2] == 8 + latency - 8
    assert run([read, read, all_of])[1]["wait for LDS", 3] == 16 + latency - 8


def test_bytes_take_as_long_as_the_slowest_level_needs() -> None:
    wait = Operation("wait", 2, vector=0)

    def load(near: float, far: float, memory: float) -> float:
        return run([Operation("memory", 1, lines=16.0, near=near, far=far, memory=memory), wait])[0] - 4

    assert load(1024, 0, 0) == 16 + MI300X_DIES.near_latency
    assert load(1024, 1024, 0) == 32 + FITTED.cache_latency
    assert load(1024, 1024, 1024) == 64 + FITTED.cache_latency + FITTED.memory_latency


def test_a_barrier_waits_for_the_last_wave_whose_way_is_the_critical_path() -> None:
    barrier = Operation("barrier", 7)
    slow, fast = [Operation("scalar", 1)] * 10, [Operation("vector", 2, 4.0)]
    cycles, path = run([*slow, barrier], [*fast, barrier])

    assert cycles == 40 + FITTED.sync_latency
    assert path["issue", 1] == 40
    assert ("issue", 2) not in path
    assert path["barrier", 7] == FITTED.sync_latency
    assert sum(path.values()) == pytest.approx(cycles + 4 + 4, abs=5)


def test_results_are_added_up_with_weights() -> None:
    one = simulate([[[Operation("vector", 1, 4.0), END]]], MI300X_DIES, RATES)
    both = combined([(2.0, one), (-0.5, one)])

    assert both.cycles == 1.5 * one.cycles
    assert both.used["issue", 1] == 1.5
