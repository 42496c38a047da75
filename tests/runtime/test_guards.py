"""Guards of data contracts: launched ahead of the kernel, reported later, without waiting for the GPU in between."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.launches import Call, Schedule
from argus.runtime.programs import LoadedProgram
from tests.runtime.fake_driver import FakeDriver

GUARD = "routed_guard0"
LAUNCH: dict[str, Any] = {
    "symbol": "routed",
    "grid": ["MB"],
    "threads": 32,
    "shared_bytes": 0,
    "maps": [],
    "checks": [],
    "arguments": [
        {"name": "expert", "kind": "pointer", "shape": ["MB"], "align": 4},
        {"name": "MB", "kind": "int"},
        {"name": "G", "kind": "int"},
    ],
    "contracts": [
        {"tensor": "expert", "shape": ["MB"], "condition": "expert[i0] < G and expert[i0] >= 0", "guard": GUARD}
    ],
}
WAITS = ("Synchronize", "Memcpy", "MemAlloc")


@frozen
class Tensor:
    held: npt.NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def data_ptr(self) -> int:
        return self.held.ctypes.data


def below(fake: FakeDriver) -> Callable[[int], None]:
    """What the emitted guard does: tensor, MB, G, the word, and whether to stop."""

    def guard(pointers: int) -> None:
        at = (ctypes.c_void_p * 5).from_address(pointers)
        tensor, told = (ctypes.c_void_p.from_address(at[place] or 0).value for place in (0, 3))
        count, groups, stop = (ctypes.c_int.from_address(at[place] or 0).value for place in (1, 2, 4))
        held = (ctypes.c_int32 * count).from_address(tensor or 0)
        for place, value in enumerate(held):
            if not 0 <= value < groups:
                ctypes.c_uint64.from_address(told or 0).value = place + 1 << 32 | value & 0xFFFF_FFFF
                if stop:
                    fake.fails |= dict.fromkeys(("cuLaunchKernelEx", "cuCtxSynchronize"), "LAUNCH_FAILED")
                return

    return guard


@pytest.fixture
def fake() -> FakeDriver:
    made = FakeDriver()
    made.guards[GUARD] = below(made)
    return made


@pytest.fixture
def kernel(fake: FakeDriver, tmp_path: Path) -> LoadedKernel:
    (tmp_path / "routed.json").write_text(json.dumps({"kernel": "routed", "launch": LAUNCH}), encoding="utf-8")
    (tmp_path / "routed.cubin").write_bytes(b"code")
    return load(tmp_path / "routed.json", fake.driver)


def bound(kernel: LoadedKernel, experts: list[int], promises: Promises) -> tuple[Tensor, Callable[[], None]]:
    tensor = Tensor(np.array(experts, np.int32))
    return tensor, kernel.bind({"expert": tensor}, {"MB": len(experts), "G": 4}, 7, promises)


@pytest.mark.parametrize("promises", ["stop", "tell"])
def test_a_guard_runs_ahead_of_each_launch_and_nothing_waits(
    fake: FakeDriver, kernel: LoadedKernel, promises: Promises
) -> None:
    _, launch = bound(kernel, [0, 3, 1], promises)
    before = len(fake.calls)
    launch()
    launch()

    assert [each[0] for each in fake.launches] == [GUARD, "routed", GUARD, "routed"]
    assert [each[1:8] for each in fake.launches[:2]] == [(1, 1, 1, 256, 1, 1, 0), (3, 1, 1, 32, 1, 1, 0)]
    assert {each[8] for each in fake.launches} == {7}
    assert not any(word in name for name in fake.calls[before:] for word in WAITS)
    kernel.synchronise()


def test_a_violation_is_reported_once_at_the_next_call(fake: FakeDriver, kernel: LoadedKernel) -> None:
    tensor, launch = bound(kernel, [0, 3, 1], "tell")
    launch()
    tensor.held[1] = -5
    launch()
    assert len(fake.launches) == 4
    tensor.held[1] = 2

    with pytest.raises(ArgusError) as told:
        launch()

    diagnostic = told.value.diagnostic
    assert diagnostic.code == "E402"
    assert diagnostic.facts == (("expert[1]", "-5"),)
    assert "expert[i0] < G" in diagnostic.message
    assert len(fake.launches) == 4
    launch()
    kernel.synchronise()


def test_a_violation_is_reported_at_the_next_synchronisation(kernel: LoadedKernel) -> None:
    _, launch = bound(kernel, [0, 9], "tell")
    launch()
    with pytest.raises(ArgusError, match=r"expert\[1\] = 9"):
        kernel.synchronise()
    kernel.synchronise()


def test_a_trap_is_reported_as_the_violated_contract(fake: FakeDriver, kernel: LoadedKernel) -> None:
    """The launch after the guard, and every later call, fails: the error names the cause, not the symptom."""
    _, launch = bound(kernel, [7, 0], "stop")
    with pytest.raises(ArgusError) as told:
        launch()
    assert told.value.diagnostic.code == "E402"
    assert told.value.diagnostic.facts == (("expert[0]", "7"),)
    assert [each[0] for each in fake.launches] == [GUARD]
    with pytest.raises(ArgusError) as failed:
        kernel.synchronise()
    assert failed.value.diagnostic.code == "E409"


NEXT_CALLS: dict[str, Callable[[GpuDriver], object]] = {
    "cuCtxSetCurrent": lambda driver: driver.enter("context"),
    "cuMemHostGetDevicePointer": lambda driver: driver.device_address(8),
    "cuLaunchKernelEx": lambda driver: driver.launcher("other", (1, 1, 1, 32, 1, 1, 0), (), None, 7, early=False)(),
}


@pytest.mark.parametrize("name", NEXT_CALLS)
def test_the_next_call_of_the_driver_reports_what_ended_the_context(
    fake: FakeDriver, kernel: LoadedKernel, name: str
) -> None:
    """Of whatever operator, and the one after it no more."""
    call = NEXT_CALLS[name]
    call(kernel.driver)
    bound(kernel, [0, 7], "tell")[1]()
    fake.fails[name] = "LAUNCH_FAILED"

    with pytest.raises(ArgusError) as other:
        call(FakeDriver(fails=fake.fails).driver)
    assert other.value.diagnostic.code == "E409"
    with pytest.raises(ArgusError, match=r"expert\[1\] = 7") as told:
        call(kernel.driver)
    assert told.value.diagnostic.code == "E402"
    with pytest.raises(ArgusError) as failed:
        call(kernel.driver)
    assert failed.value.diagnostic.code == "E409"


def test_integers_are_fetched_and_checked_by_default(fake: FakeDriver, kernel: LoadedKernel) -> None:
    with pytest.raises(ArgusError, match=r"found expert\[1\] = 4"):
        bound(kernel, [0, 4], "fetch")
    assert "cuMemcpyDtoH" in fake.calls
    assert fake.launches == []


def test_code_without_guards_is_refused(fake: FakeDriver) -> None:
    contracts = [{key: value for key, value in LAUNCH["contracts"][0].items() if key != "guard"}]
    kernel = LoadedKernel("routed", LAUNCH | {"contracts": contracts}, "routed", fake.driver)
    with pytest.raises(ArgusError, match="has no guard in this code") as refused:
        bound(kernel, [0], "stop")
    assert refused.value.diagnostic.code == "E405"


def test_a_tensor_of_another_shape_is_refused(kernel: LoadedKernel) -> None:
    with pytest.raises(ArgusError, match="expected"):
        kernel.bind({"expert": Tensor(np.zeros(3, np.int32))}, {"MB": 2, "G": 4}, 0, "tell")


@pytest.mark.parametrize("whole", [False, True])
def test_integers_are_checked_again_where_they_are_checked_to_bind(kernel: LoadedKernel, *, whole: bool) -> None:
    program = LoadedProgram("routed", ((kernel, {"expert": "expert"}),), ())
    schedule = Schedule(program if whole else kernel, "context")
    tensor, call = Tensor(np.array([0, 3, 1], np.int32)), Call((("MB", 3), ("G", 4)))
    schedule.launch(call, (tensor.data_ptr(),), lambda: {"expert": tensor}, 7)
    tensor.held[1] = 4
    with pytest.raises(ArgusError) as refused:
        schedule.launch(call, (tensor.data_ptr(),), lambda: {"expert": tensor}, 7)
    assert refused.value.diagnostic.code == "E402"


@pytest.mark.parametrize(("given", "guards"), [("expert", 1), ("other", 2)])
def test_a_program_checks_what_two_launches_ask_ahead_of_the_first(
    fake: FakeDriver, kernel: LoadedKernel, given: str, guards: int
) -> None:
    """And of each tensor, where the launches take different ones."""
    program = LoadedProgram("routed", ((kernel, {"expert": "expert"}), (kernel, {"expert": given})), ())
    schedule = Schedule(program, "context")
    tensor, call = Tensor(np.array([0, 3, 1], np.int32)), Call((("MB", 3), ("G", 4)), promises="tell")
    for _ in range(2):
        schedule.launch(call, (tensor.data_ptr(),), lambda: {"expert": tensor, "other": tensor}, 7)

    once = [GUARD, "routed", "routed"] if guards == 1 else [GUARD, "routed", GUARD, "routed"]
    assert [each[0] for each in fake.launches] == 2 * once
    assert len(schedule.prepared) == 1


@pytest.mark.parametrize("read", [("expert",), ("expert", "groups"), ()])
def test_a_program_checks_what_no_launch_writes_ahead_of_all(
    fake: FakeDriver, kernel: LoadedKernel, read: tuple[str, ...]
) -> None:
    """By the kernel that has the most contracts, which are then not checked again for the others."""
    other = {"tensor": "groups", "shape": ["G"], "condition": "groups[i0] >= 0", "guard": "routed_guard1"}
    functions = {name: name for name in (GUARD, "routed_guard1", "routed_guards")}
    launch = LAUNCH | {"contracts": [*LAUNCH["contracts"], other], "guards": "routed_guards"}
    for guard in ("routed_guard1", "routed_guards"):
        fake.guards[guard] = lambda _pointers: None
    more = LoadedKernel("more", launch, "more", fake.driver, functions)
    given = {"expert": "expert", "groups": "groups"}
    program = LoadedProgram("routed", ((kernel, given), (more, given)), (), frozenset(read))
    tensors = {"expert": Tensor(np.zeros(3, np.int32)), "groups": Tensor(np.zeros(4, np.int32))}
    program.bind(tensors, {"MB": 3, "G": 4}, 7, "tell")()

    wanted: dict[tuple[str, ...], list[str]] = {
        ("expert", "groups"): ["routed_guards", "routed", "more"],
        ("expert",): [GUARD, "routed", "routed_guard1", "more"],
        (): [GUARD, "routed", "routed_guard1", "more"],
    }
    assert [each[0] for each in fake.launches] == wanted[read]


def test_a_kernel_without_blocks_checks_nothing_for_others(fake: FakeDriver, kernel: LoadedKernel) -> None:
    empty = LoadedKernel("none", LAUNCH | {"grid": ["G - 4"]}, "none", fake.driver, {GUARD: GUARD})
    given = {"expert": "expert"}
    for read in (frozenset[str](), frozenset({"expert"})):
        program = LoadedProgram("routed", ((empty, given), (kernel, given)), (), read)
        program.bind({"expert": Tensor(np.array([0, 3, 1], np.int32))}, {"MB": 3, "G": 4}, 7, "tell")()
    assert [each[0] for each in fake.launches] == 2 * [GUARD, "routed"]


@pytest.mark.parametrize("early", [False, True])
def test_a_guard_starts_as_early_as_its_kernel(fake: FakeDriver, *, early: bool) -> None:
    kernel = LoadedKernel("routed", LAUNCH | {"early": early}, "routed", fake.driver, {GUARD: GUARD})
    bound(kernel, [0, 3, 1], "tell")[1]()
    assert [bool(each) for each in fake.overlapping] == [early, early]


def test_one_launch_checks_all_contracts_of_a_kernel(fake: FakeDriver) -> None:
    """Its blocks are those of the longest tensor, in a row for each; without one of the contracts, each has its own."""
    other = {"tensor": "groups", "shape": ["G"], "condition": "groups[i0] >= 0", "guard": "routed_guard1"}
    contracts = [*LAUNCH["contracts"], other]
    functions = {name: name for name in (GUARD, "routed_guard1", "routed_guards")}
    launch = LAUNCH | {"contracts": contracts, "guards": "routed_guards"}
    fake.guards["routed_guards"] = lambda _pointers: None
    fake.guards[GUARD] = lambda _pointers: None
    kernel = LoadedKernel("routed", launch, "routed", fake.driver, functions)
    tensors = {"expert": Tensor(np.zeros(600, np.int32)), "groups": Tensor(np.zeros(4, np.int32))}
    prepared = kernel.prepare({"MB": 600, "G": 4})
    prepared.bind(tensors, 7, "stop")()
    evolve(prepared, contracts=prepared.contracts[:1]).bind(tensors, 7, "stop")()

    assert [each[0] for each in fake.launches] == ["routed_guards", "routed", GUARD, "routed"]
    assert fake.launches[0][1:8] == (3, 2, 1, 256, 1, 1, 0)


CHECKED = "routed_checked"


def checking(fake: FakeDriver, *, early: bool = False) -> LoadedKernel:
    """A kernel whose entry point `CHECKED` checks as the guard does."""
    fake.guards[CHECKED] = below(fake)
    launch = LAUNCH | {"checked": CHECKED, "early": early}
    return LoadedKernel("routed", launch, "routed", fake.driver, {GUARD: GUARD, CHECKED: CHECKED})


def test_a_kernel_that_checks_its_contracts_has_no_guard(fake: FakeDriver) -> None:
    kernel = checking(fake)
    tensor, launch = bound(kernel, [0, 3, 1], "tell")
    launch()
    assert [each[0] for each in fake.launches] == [CHECKED]
    assert fake.launches[0][1:8] == (3, 1, 1, 32, 1, 1, 0)
    tensor.held[2] = 4
    launch()

    with pytest.raises(ArgusError, match=r"found expert\[2\] = 4"):
        launch()


def test_integers_that_are_fetched_are_not_checked_again(fake: FakeDriver) -> None:
    _tensor, launch = bound(checking(fake), [0, 3, 1], "fetch")
    launch()
    assert [each[0] for each in fake.launches] == ["routed"]


def test_a_guard_checks_more_integers_than_a_block_should(fake: FakeDriver) -> None:
    _tensor, launch = bound(checking(fake), [0] * 4097, "stop")
    launch()
    assert [each[0] for each in fake.launches] == [GUARD, "routed"]


@pytest.mark.parametrize("read", [True, False])
def test_the_first_launch_of_a_program_checks_for_the_others(
    fake: FakeDriver, kernel: LoadedKernel, *, read: bool
) -> None:
    """If no launch writes the integers; otherwise each checks its own."""
    given = {"expert": "expert"}
    held = frozenset({"expert"} if read else ())
    for launches in ((checking(fake), kernel), (kernel, checking(fake))):
        program = LoadedProgram("routed", tuple((each, given) for each in launches), (), held)
        program.bind({"expert": Tensor(np.array([0, 3, 1], np.int32))}, {"MB": 3, "G": 4}, 7, "tell")()

    assert [each[0] for each in fake.launches] == [CHECKED, "routed", GUARD, "routed", "routed"]


def test_the_first_launch_that_runs_waits_for_what_was_launched_before(fake: FakeDriver) -> None:
    """Those ahead of it in the program have no blocks, so it may not count on their waiting."""
    launch = {key: value for key, value in LAUNCH.items() if key != "contracts"} | {"early": True}
    empty = LoadedKernel("none", launch | {"grid": ["G - 4"]}, "none", fake.driver)
    later = LoadedKernel("later", launch, "later", fake.driver)
    for first in (later, empty):
        program = LoadedProgram("routed", tuple((each, {"expert": "expert"}) for each in (first, later, later)), ())
        program.bind({"expert": Tensor(np.array([0, 3, 1], np.int32))}, {"MB": 3, "G": 4}, 7, "tell")()

    assert [bool(each) for each in fake.overlapping] == [True, True, True, False, True]
