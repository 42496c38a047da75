"""`argus.scaled_matmul` without a GPU: accepted operands, the chosen kernel, and the arguments passed to the driver."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve
from ml_dtypes import bfloat16, float8_e4m3fn

import argus
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.kernels import fp8, fp8_blocks
from argus.ops.choice import select_fp8, select_fp8_blocks
from argus.runtime import launch_gate
from argus.runtime.cuda import driver
from argus.runtime.kernel_cache import CachedVerdict
from tests.ops.fake_torch import Card, Matrix, aligned
from tests.runtime.fake_driver import FakeDriver

module = import_module("argus.ops.scaled_matmul")


def properties(_index: int) -> SimpleNamespace:
    return SimpleNamespace(name="Imagined GPU", gcnArchName="Imagined GPU", major=9, minor=0)


CUDA = SimpleNamespace(
    current_device=lambda: 0,
    current_stream=lambda: SimpleNamespace(cuda_stream=7),
    get_device_properties=properties,
)
TYPES = {"torch.float8_e4m3fn": float8_e4m3fn, "torch.float32": np.float32, "torch.bfloat16": bfloat16}


@define
class TypedMatrix(Matrix):
    """A matrix of 8-bit numbers, their scales, or a product; a new one has its own type."""

    def flatten(self, first: int, last: int) -> Self:
        extents = self.array.shape
        return evolve(self, array=self.array.reshape(*extents[:first], -1, *extents[last % len(extents) + 1 :]))

    def reshape(self, *shape: int) -> Self:
        return evolve(self, array=self.array.reshape(shape))

    def new_empty(self, shape: tuple[int, ...], *, dtype: object = None) -> Self:
        made = aligned(np.full(shape, np.nan, TYPES[str(dtype)]))
        return evolve(self, array=made, dtype=str(dtype), shift=0, copies=None)


def eight(rows: int, columns: int, seed: int = 0) -> TypedMatrix:
    drawn = np.random.default_rng(seed).integers(-2, 3, (rows, columns))
    return TypedMatrix(aligned(drawn.astype(float8_e4m3fn)), "torch.float8_e4m3fn")


def scale(*shape: int, seed: int = 0) -> TypedMatrix:
    drawn = np.random.default_rng(seed).integers(1, 9, shape) / 4
    return TypedMatrix(aligned(np.asarray(drawn, np.float32)), "torch.float32")


def at(place: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401 reason: a NumPy type
    """The array at an address."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(place)).view(dtype).reshape(shape)


def multiply(arguments: list[int]) -> None:
    """Either kernel on addresses: maps of A, B and C, then the scales, then the sizes."""
    (a, b, c, of_a, of_b), sizes = arguments[:5], arguments[5:]
    m, k, n, *blocks = sizes if len(sizes) == 3 else (sizes[0], sizes[1], sizes[2], sizes[3], sizes[4])
    left, right = (at(p, s, float8_e4m3fn).astype(np.float64) for p, s in ((a, (m, k)), (b, (n, k))))
    if blocks:
        kb, nb = blocks
        left = left * np.repeat(at(of_a, (kb, m), np.float32), 128, axis=0)[:k].T
        right = right * np.repeat(np.repeat(at(of_b, (nb, kb), np.float32), 128, axis=0)[:n], 128, axis=1)[:, :k]
    else:
        left, right = left * at(of_a, (1,), np.float32), right * at(of_b, (1,), np.float32)
    at(c, (m, n), bfloat16)[:] = (left @ right.T).astype(bfloat16)


def judging(verdict: str) -> Callable[[Kernel], CachedVerdict]:
    return lambda _kernel: CachedVerdict(verdict)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FakeDriver]:
    """torch, a driver, and kernels that count as proved. The parameter: how many sizes the kernel has."""
    made = FakeDriver(multiply, pointers=5, sizes=getattr(request, "param", 3))
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    torch = SimpleNamespace(cuda=CUDA, is_grad_enabled=lambda: False, bfloat16="torch.bfloat16")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(driver, "bindings", lambda: made.raw)
    monkeypatch.setattr(launch_gate, "verify_cached", judging("proved"))
    module.clear_cache()
    yield made
    module.clear_cache()


ONE = scale(1), scale(1, seed=1)


# -- launches ------------------------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("shapes", [((1,), (1,)), ((), (1, 1))], ids=str)
def test_one_scale_a_matrix(fake: FakeDriver, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = eight(70, 48), eight(24, 48, 1).mT
    of_a, of_b = scale(*shapes[0]), scale(*shapes[1], seed=1)

    found: Any = argus.scaled_matmul(a, b, of_a, of_b, config="by_rows")

    exact = (a.array.astype(np.float64) * of_a.array.item()) @ (b.array.astype(np.float64) * of_b.array.item())
    assert found.dtype == "torch.bfloat16"
    assert np.array_equal(found.array, exact.astype(bfloat16))
    assert [launch[8] for launch in fake.launches] == [7]


@pytest.mark.share(3)
@pytest.mark.parametrize("fake", [5], indirect=True)
def test_scales_of_blocks(fake: FakeDriver) -> None:
    a, b = eight(70, 272), eight(136, 272, 1).mT
    of_a, of_b = scale(3, 70).mT, scale(2, 3, seed=1).mT

    found: Any = argus.scaled_matmul(a, b, of_a, of_b, config="by_rows")

    left = a.array.astype(np.float64) * np.repeat(of_a.array, 128, axis=1)[:, :272]
    right = b.array.astype(np.float64) * np.repeat(np.repeat(of_b.array, 128, axis=0)[:272], 128, axis=1)[:, :136]
    assert np.array_equal(found.array, (left @ right).astype(bfloat16))
    assert len(fake.launches) == 1


@pytest.mark.share(2)
def test_a_repeated_call_checks_addresses_only(fake: FakeDriver) -> None:
    a, b = eight(64, 32), eight(16, 32, 1).mT
    argus.scaled_matmul(a, b, *ONE, config="by_rows")
    calls = len(fake.calls)

    again: Any = argus.scaled_matmul(eight(64, 32, 2), b, *ONE, config="by_rows")

    exact = eight(64, 32, 2).array.astype(np.float64) @ b.array.astype(np.float64)
    assert np.array_equal(again.array, (exact * ONE[0].array * ONE[1].array).astype(bfloat16))
    assert len(fake.calls) - calls <= 5


@pytest.mark.parametrize("fake", [5], indirect=True)
def test_operands_in_another_layout_are_copied(fake: FakeDriver) -> None:
    copies: list[str] = []
    a, weight = evolve(eight(8, 32), copies=copies), evolve(eight(16, 32), copies=copies)
    of_a, of_b = evolve(scale(1, 8), copies=copies), evolve(scale(1, 1), copies=copies)

    argus.scaled_matmul(a, weight.mT, of_a.mT, of_b.mT)
    assert copies == []

    argus.scaled_matmul(evolve(a, shift=2), weight.mT, of_a.mT, of_b.mT)
    argus.scaled_matmul(a, evolve(eight(32, 16), copies=copies), of_a.mT, of_b.mT)
    assert copies == ["clone", "contiguous"]
    assert len(fake.launches) == 3


def test_empty_products_launch_nothing(fake: FakeDriver) -> None:
    assert argus.scaled_matmul(eight(0, 16), eight(8, 16).mT, *ONE).shape == (0, 8)
    empty: Any = argus.scaled_matmul(eight(3, 0), eight(8, 0).mT, *ONE)
    assert (empty.array == 0).all()
    assert fake.launches == []


@pytest.mark.parametrize(
    ("verdict", "unproved", "launched"),
    [("unknown", "refuse", False), ("unverified", "refuse", False), ("unknown", "allow", True)],
)
def test_unproved_kernels_are_launched_only_on_request(
    fake: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    unproved: Any,  # noqa: ANN401 reason: of two words
    launched: bool,
) -> None:
    monkeypatch.setattr(launch_gate, "verify_cached", judging(verdict))
    if launched:
        argus.scaled_matmul(eight(8, 16), eight(8, 16).mT, *ONE, unproved=unproved)
    else:
        with pytest.raises(ArgusError) as refused:
            argus.scaled_matmul(eight(8, 16), eight(8, 16).mT, *ONE, unproved=unproved)
        assert refused.value.diagnostic.code == "E413"
    assert bool(fake.launches) == launched


def test_a_schedule_that_does_not_support_the_shape_is_refused(fake: FakeDriver) -> None:
    with pytest.raises(ArgusError) as refused:
        argus.scaled_matmul(eight(8, 24), eight(8, 24).mT, *ONE)
    assert refused.value.diagnostic.code == "E405"
    assert "K % 16 == 0" in refused.value.diagnostic.message
    assert fake.launches == []


# -- refusals ------------------------------------------------------------------------------------------------

A, B = eight(3, 16), eight(8, 16).mT


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ((np.zeros((3, 16)), B, *ONE), "`a` is not a torch tensor, found ndarray"),
        ((A, evolve(B, dtype="torch.bfloat16"), *ONE), "`b` expects elements of type torch.float8_e4m3fn"),
        ((A, B, evolve(ONE[0], dtype="torch.float64"), ONE[1]), "`scale_a` expects elements of type torch.float32"),
        ((evolve(A, array=A.array[0]), B, *ONE), "`a` expects 2 axes, found 1"),
        ((A, B, ONE[0], evolve(ONE[1], is_cuda=False, device="cpu")), "`scale_b` is on cpu"),
        ((evolve(A, requires_grad=True), B, *ONE), "`a` requires a gradient"),
        ((A, evolve(B, device=Card(1)), *ONE), "and `b` on"),
        ((A, eight(8, 8).mT, *ONE), "`b` expects 16 rows"),
        ((A, B, scale(3, 1), ONE[1]), "expected one number each, or (3, 1) and (1, 1)"),
        ((A, B, scale(2), ONE[1]), "the scales are (2,) and (1,)"),
    ],
)
def test_operands_that_are_not_a_scaled_product_are_refused(
    tensors: tuple[Any, Any, Any, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: True, cuda=CUDA))
    with pytest.raises(ArgusError) as refused:
        argus.scaled_matmul(*tensors)
    assert refused.value.diagnostic.code == "E401"
    assert words in refused.value.diagnostic.message


@pytest.mark.usefixtures("fake")
def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ArgusError, match="there is no schedule `fast`"):
        argus.scaled_matmul(A, B, *ONE, config="fast")


@pytest.mark.parametrize("shape", [(1, 8, 16), (4096, 4096, 4096), (8192, 8192, 8192), (512, 7168, 2048)], ids=str)
def test_selected_configurations_are_shipped(shape: tuple[int, int, int]) -> None:
    assert select_fp8(*shape) in fp8.CONFIGS
    assert select_fp8_blocks(*shape) in fp8_blocks.CONFIGS
