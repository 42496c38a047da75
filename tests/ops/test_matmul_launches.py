"""Launches of `argus.matmul`: arguments of the driver's calls, and what a repeated call does not do again."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Generator
from contextlib import contextmanager
from math import prod
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field
from ml_dtypes import bfloat16

import argus
from argus.ops.call_path import load_candidate
from argus.ops.matmul import candidate
from argus.runtime import launch_gate, launches
from argus.runtime.cuda import driver
from argus.runtime.launches import Call
from tests.ops.fake_torch import (
    CUDA,
    ELSEWHERE,
    Matrix,
    Multiplying,
    expected_product,
    matmul_module,
    matrix,
    tensor_at,
    verified_as,
)
from tests.runtime.fake_driver import FakeDriver


@pytest.mark.share(4, among="launches of products")
@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 16, 8)], ids=str)
def test_the_product_is_launched_on_the_current_stream(fake: Multiplying, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = matrix(m, k), matrix(k, n, 1)

    found = argus.matmul(a, b)

    assert np.array_equal(found.array, expected_product(a, b))
    assert [launch[8] for launch in fake.launches] == [7]


@define
class Gathering(Multiplying):
    """Its first kernel leaves a product in a workspace, its second hands it over. rooms: the workspaces' addresses."""

    rooms: list[int] = field(factory=list[int])

    def cuLaunchKernelEx(self, *arguments: Any) -> None:  # noqa: ANN401, N802 reason: the driver's
        first = arguments[1] == "partial_gemm_"
        self.pointers, self.sizes = (3, 3) if first else (2, 3)
        self.kernel = self.leave if first else self.hand_over
        FakeDriver.cuLaunchKernelEx(self, *arguments)

    def leave(self, arguments: list[int]) -> None:
        a, b, part, m, k, n = arguments
        self.rooms.append(part)
        held = tensor_at(a, (m, k), bfloat16).astype(np.float32) @ tensor_at(b, (n, k), bfloat16).astype(np.float32).T
        summed(part, (m, n))[:] = held

    def hand_over(self, arguments: list[int]) -> None:
        part, c, m, _, n = arguments
        assert part == self.rooms[-1]
        tensor_at(c, (m, n), bfloat16)[:] = summed(part, (m, n)).astype(bfloat16)


def summed(place: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((ctypes.c_float * prod(shape)).from_address(place)).reshape(shape)


@pytest.mark.share(4, among="launches of products")
def test_a_program_is_launched_with_its_own_workspace(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two launches of one stream; each call allocates its workspace, like its result."""
    del fake
    made = Gathering(pointers=3)
    monkeypatch.setattr(driver, "bindings", lambda: made.raw)
    monkeypatch.setattr(launch_gate, "verify_program_cached", verified_as("proved"))
    a, b = matrix(96, 200), matrix(72, 200, 1)

    for seed in range(3):
        other = matrix(96, 200, seed)
        found = argus.matmul(other, b.mT, config="stream_bm64_bn64_stages4_chunks3_run2")
        assert np.array_equal(found.array, expected_product(other, b.mT))

    assert [launch[0] for launch in made.launches] == ["partial_gemm_", "reduce_tiles_"] * 3
    assert [launch[1:4] for launch in made.launches[:2]] == [(6, 1, 1), (4, 16, 1)]
    assert {launch[8] for launch in made.launches} == {7}
    assert np.array_equal(argus.matmul(a, b.mT, config="stream_128_128_8_1").array, expected_product(a, b.mT))


def test_a_repeated_call_checks_addresses_only(fake: Multiplying) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1)
    first = argus.matmul(a, b.mT)
    calls = len(fake.calls)
    other = matrix(64, 8, 2)
    again = argus.matmul(other, b.mT)
    assert np.array_equal(first.array, expected_product(a, b.mT))
    assert np.array_equal(again.array, expected_product(other, b.mT))
    # The context once a thread, two maps or three for new addresses, and the launch.
    assert len(fake.calls) - calls <= 5
    before = len(fake.calls)
    shifted = evolve(matrix(64, 8, 3), shift=0)
    assert np.array_equal(argus.matmul(shifted, b.mT).array, expected_product(shifted, b.mT))
    assert "cuCtxSetCurrent" not in fake.calls[before:]


@pytest.mark.usefixtures("fake")
def test_a_repeated_call_that_autograd_records_is_the_registered_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1)
    argus.matmul(a, b.mT)
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: True)
    called: list[str] = []

    def registered(name: str) -> Any:  # noqa: ANN401 reason: an operator
        def call(*_given: object, **_options: object) -> None:
            called.append(name)

        return call

    monkeypatch.setattr(matmul_module, "registered", registered)
    argus.matmul(evolve(a, requires_grad=True), b.mT)
    assert called == ["matmul"]


def test_a_kernel_is_loaded_once_and_its_launch_prepared_once_a_shape(fake: Multiplying) -> None:
    a, b = matrix(8, 16), matrix(8, 16).mT
    schedule = load_candidate(candidate("gemm_nt", "small"), 0, "refuse")
    tensors = {"A": a, "B": b.mT, "C": a.new_empty((8, 8))}
    places = tuple(each.data_ptr() for each in tensors.values())
    call = Call((("M", 8), ("N", 8), ("K", 16)), (a.stride(), b.stride()))
    for _ in range(3):
        schedule.launch(call, places, lambda: tensors, 7)

    assert fake.calls.count("cuTensorMapEncodeTiled") == 3
    assert fake.calls.count("cuModuleLoadData") == 1
    assert len(fake.launches) == 3


def test_cached_launches_are_bounded(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_MOST_BOUND", 2)
    schedule = load_candidate(candidate("gemm_nt", "narrow"), 0, "refuse")
    for rows in range(1, 8):
        tensors = {"A": matrix(rows, 3), "B": matrix(8, 3), "C": matrix(rows, 8)}
        places = tuple(each.data_ptr() for each in tensors.values())
        call = Call((("M", rows), ("N", 8), ("K", 3)), ((3, 1), (3, 1)))
        schedule.launch(call, places, lambda named=tensors: named, 7)

    assert len(schedule.prepared) <= 2
    assert len(fake.launches) == 7


def test_another_device_is_made_current_for_the_launch(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = [0]

    @contextmanager
    def switched(index: int) -> Generator[None]:
        entered.append(index)
        monkeypatch.setattr(CUDA, "current_device", lambda: index)
        yield
        monkeypatch.setattr(CUDA, "current_device", lambda: 0)

    monkeypatch.setattr(CUDA, "device", switched, raising=False)
    monkeypatch.setattr(CUDA, "current_device", lambda: entered[-1])
    a, b = evolve(matrix(64, 8), device=ELSEWHERE), evolve(matrix(16, 8), device=ELSEWHERE).mT
    for _ in range(3):
        entered.append(0)
        assert np.array_equal(argus.matmul(a, b).array, expected_product(a, b))

    assert entered == [0, 0, 1, 0, 1, 0, 1]
    assert len(fake.launches) == 3


def test_each_thread_makes_the_context_current_once(fake: Multiplying) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1).mT
    argus.matmul(a, b)
    argus.matmul(a, b)
    before = len(fake.calls)

    thread = Thread(target=lambda: [argus.matmul(a, b) for _ in range(3)])
    thread.start()
    thread.join()

    assert fake.calls[before:].count("cuCtxSetCurrent") == 1
    assert len(fake.launches) == 5


def test_private_torch_functions_are_used_where_they_exist(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, ...]] = []

    def empty(shape: tuple[int, ...], strides: tuple[int, ...], dtype: object) -> Matrix:
        made.append((shape, strides, dtype))
        return matrix(*shape)

    inner = SimpleNamespace(
        _cuda_getDevice=lambda: 0,
        _cuda_getCurrentRawStream=lambda index: 40 + index,  # pyright: ignore[reportUnknownLambdaType]
        _dynamo=SimpleNamespace(guards=SimpleNamespace(_empty_strided_cuda=empty)),
    )
    monkeypatch.setattr(sys.modules["torch"], "_C", inner, raising=False)
    a, b = matrix(64, 8), matrix(16, 8, 1).mT
    for _ in range(2):
        assert np.array_equal(argus.matmul(a, b).array, expected_product(a, b))

    assert made == [((64, 16), (16, 1), a.dtype)] * 2
    assert [launch[8] for launch in fake.launches] == [40, 40]


def test_code_is_loaded_during_a_capture_and_the_capture_mode_restored(fake: Multiplying) -> None:
    argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)

    assert fake.loaded_in == ["CU_STREAM_CAPTURE_MODE_RELAXED"]
    assert fake.mode == "global"


FORBIDDEN = ("Synchronize", "MemAlloc", "MemFree", "Memcpy", "Memset", "ModuleLoad")


def test_a_repeated_call_neither_waits_nor_allocates(fake: Multiplying) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1).mT
    argus.matmul(a, b)
    before = len(fake.calls)
    argus.matmul(a, b)

    later = fake.calls[before:]
    assert later.count("cuLaunchKernelEx") == 1
    assert not any(word in name for name in later for word in FORBIDDEN)
