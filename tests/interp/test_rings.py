"""A ring GEMM: correct under every schedule; each fault is caught by a directed schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from argus.core.ir import Await
from argus.interp.compiled_kernel import Prepared
from argus.interp.interpret import interpret
from argus.interp.run import run_prepared
from argus.interp.search.schedule import DIRECTED, ROLES_DIRECTED, Schedule, directed
from argus.interp.violation import Violation
from tests.interp.rings import Config, gemm, unfenced

Array = npt.NDArray[Any]
SIZES = {"M": 136, "N": 40, "K": 40}


def inputs(sizes: dict[str, int]) -> tuple[Array, Array, Array]:
    """Small integers, so that every order of summation is exact, and their product in double precision."""
    random = np.random.default_rng(1)
    a = random.integers(-3, 4, (sizes["M"], sizes["K"])).astype(ml_dtypes.bfloat16)
    b = random.integers(-3, 4, (sizes["N"], sizes["K"])).astype(ml_dtypes.bfloat16)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    return a, b, exact.astype(ml_dtypes.bfloat16)


def assert_right(config: Config, schedules: Iterable[Schedule], sizes: dict[str, int] = SIZES) -> None:
    prepared, (a, b, wanted) = Prepared(gemm(config)), inputs(sizes)
    for schedule in schedules:
        found = run_prepared(prepared, sizes, {"A": a, "B": b}, schedule, tags=True, values=True)
        assert found.violations == (), (schedule, found.violations[0].message)
        assert np.array_equal(found.arrays["C"], wanted), schedule


def caught(config: Config, code: str) -> list[Violation]:
    """The violations with a code under all directed schedules."""
    prepared, found = Prepared(gemm(config)), list[Violation]()
    for schedule in directed(prepared.kernel):
        found += run_prepared(prepared, SIZES, None, schedule, tags=True, values=False).violations
    return [violation for violation in found if violation.code == code]


def test_there_are_as_many_directed_schedules_as_orders_of_the_actors() -> None:
    assert len({schedule.priority for schedule in ROLES_DIRECTED}) == 24
    assert directed(gemm(Config())) == ROLES_DIRECTED
    assert ROLES_DIRECTED[0].priority == ("producer", "first", "rest", "engine")


@pytest.mark.share(164, among="interp: rings")
@pytest.mark.parametrize("consumers", [1, 2])
@pytest.mark.parametrize(("stages", "lag"), [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)])
def test_every_directed_schedule_is_right(consumers: int, stages: int, lag: int) -> None:
    assert_right(Config(stages, consumers, lag), ROLES_DIRECTED)


@pytest.mark.share(164, among="interp: rings")
@pytest.mark.parametrize("consumers", [1, 2])
def test_stores_through_boxes_are_right(consumers: int) -> None:
    assert_right(Config(2, consumers, bn=32, by_tma=True), ROLES_DIRECTED)


@pytest.mark.share(164, among="interp: rings")
@pytest.mark.parametrize(
    "config",
    [Config(3, 2), Config(2, 1, 1, bn=32, blocks=2, by_tma=True), Config(1, 2, 0), Config(4, 2, bn=32, by_tma=True)],
)
def test_random_schedules_are_right(config: Config) -> None:
    assert_right(config, [Schedule("mixed", seed) for seed in range(50)])
    orders = [Schedule(style, 0, each.order) for style in ("early", "late") for each in DIRECTED]  # type: ignore[arg-type]
    assert_right(config, orders)


@pytest.mark.share(3)
@pytest.mark.parametrize("depth", [8, 16, 24, 72])
def test_ragged_sizes_are_right(depth: int) -> None:
    assert_right(Config(3, 2, blocks=2), ROLES_DIRECTED[::5], {"M": 1, "N": 8, "K": depth})
    assert_right(Config(3, 1, bn=32, by_tma=True), ROLES_DIRECTED[::5], {"M": 65, "N": 24, "K": depth})


@pytest.mark.share(164, among="interp: rings")
@pytest.mark.parametrize(
    ("fault", "code", "text"),
    [
        ("no empty wait", "I5", "is written by `load` while `math` 0 reads it"),
        ("wrong parity", "I6", "the wait for phase 1 of `full[0]` returns although 0 phases are complete"),
        ("phase restarted", "I6", "the wait for phase 0 of `full[1]` returns although 3 phases are complete"),
        ("wrong slot", "I5", "is read by `math` 0 while `load` writes it"),
        ("half the bytes", "I7", "more than announced"),
        ("bytes of B alone", "I7", "more than announced"),
        ("empty count 1", "I10", "is overwritten while a wgmma may still read it"),
        ("early release", "I10", "is overwritten while a wgmma may still read it"),
        ("no final wait", "I11", "`acc` is read while an operation on it is in flight"),
        ("B backwards", "I1", "multiplies elements whose `k` differs: 0 and 32"),
        ("consumer leaves early", "I9", "the wait never ends: `load` waits for phase"),
        ("no init fence", "I14", "is used, but its initialisation is not fenced"),
        ("no init barrier", "I14", "no barrier lies between the fence of its initialisation and this use"),
    ],
)
def test_fault_of_the_ring_is_caught(fault: str, code: str, text: str) -> None:
    assert any(text in found.message for found in caught(Config(2, fault=fault), code))


@pytest.mark.share(164, among="interp: rings")
@pytest.mark.parametrize(
    ("fault", "code", "text"),
    [
        ("no proxy fence", "I12", "no proxy fence by the writer followed by a barrier lies between"),
        ("fence before the writes", "I12", "no proxy fence by the writer followed by a barrier lies between"),
        ("fence by the issuer only", "I12", "no proxy fence by the writer followed by a barrier lies between"),
        ("no barrier before the store", "I12", "while generic-proxy writes to it may be in flight"),
        ("no bulk wait", "I13", "is overwritten while a bulk store may still read it"),
        ("wait by the wrong thread", "I13", "is overwritten while a bulk store may still read it"),
        ("no barrier after the wait", "I13", "is overwritten while a bulk store may still read it"),
        ("no wait at the end", "I13", "ends without a wait for its reads"),
    ],
)
def test_fault_of_the_boxes_is_caught_on_every_directed_schedule(fault: str, code: str, text: str) -> None:
    prepared = Prepared(gemm(Config(2, fault=fault, by_tma=True, bn=32)))
    for schedule in ROLES_DIRECTED:
        outcome = run_prepared(prepared, SIZES, None, schedule, tags=True, values=False)
        found = {violation.code: violation.message for violation in outcome.violations}
        assert text in found[code], schedule


def test_a_phase_that_ends_before_its_copies_land_is_caught() -> None:
    prepared = Prepared(gemm(Config(2, fault="bytes of B alone")))
    schedules = [Schedule("mixed", seed) for seed in range(10)]
    outcomes = [run_prepared(prepared, SIZES, None, each, tags=True, values=False) for each in schedules]
    found = {violation.message for outcome in outcomes for violation in outcome.violations if violation.code == "I7"}
    early = "phase 0 of `full[0]` completes while a copy that signals it is in flight"
    assert f"{early}: fewer bytes were announced than are copied" in found


@pytest.mark.share(9, among="faults of rings")
def test_a_lag_that_is_not_below_the_stages_deadlocks_in_a_cycle() -> None:
    prepared = Prepared(gemm(Config(1, 2, 1)))
    for schedule in (*ROLES_DIRECTED, Schedule("mixed", 1)):
        (found,) = run_prepared(prepared, SIZES, None, schedule, tags=True, values=False).violations
        assert found.code == "I9"
        assert found.message == (
            "deadlock, the waits form a cycle: "
            "`load` waits for phase 0 of `empty[0]` (in phase 0, 2 of 2 arrivals missing), "
            "where `math` 0 would arrive; "
            "`math` 0 waits for phase 1 of `full[0]` (in phase 1, 1 of 1 arrivals missing), "
            "where `load` would arrive"
        )
        assert isinstance(found.stmt, Await)
        assert isinstance(found.other, Await)
        assert found.iteration == (("t", 0), ("k", 1))
        assert [name for name, _ in found.facts] == ["`load`", "`math` 0", "`math` 1"]


def test_products_without_their_fence_are_caught() -> None:
    prepared = Prepared(unfenced(gemm(Config())))
    outcome = run_prepared(prepared, SIZES, None, ROLES_DIRECTED[0], tags=True, values=False)
    assert {violation.code for violation in outcome.violations} == {"I11"}
    assert "no `wgmma` fence lies between" in outcome.violations[0].message


@pytest.mark.share(9, among="faults of rings")
def test_a_race_names_agents_threads_and_the_element() -> None:
    found = caught(Config(2, fault="early release"), "I10")[0]
    assert [text for _, text in found.facts] == [
        "`math` 0, thread 128, asynchronous (wgmma)",
        "`load`, thread 0, asynchronous (tma)",
    ]
    assert (found.thread, found.other_thread) == (0, 128)
    assert found.element is not None
    assert len(found.element) == 3


@pytest.mark.share(9, among="faults of rings")
def test_wrong_data_shows_in_the_values_too() -> None:
    a, b, wanted = inputs(SIZES)
    prepared = Prepared(gemm(Config(2, fault="early release")))
    outcomes = [
        run_prepared(prepared, SIZES, {"A": a, "B": b}, schedule, tags=False, values=True)
        for schedule in (*ROLES_DIRECTED, *(Schedule("mixed", seed) for seed in range(20)))
    ]
    assert any(not np.array_equal(outcome.arrays["C"], wanted) for outcome in outcomes)


def test_the_user_runs_a_kernel_with_roles() -> None:
    a, b, wanted = inputs(SIZES)
    found = interpret(gemm(Config(bn=32, by_tma=True)), a, b, np.zeros_like(wanted))
    assert np.array_equal(found["C"], wanted)
