"""`argus.matmul` without a GPU: accepted operands, the chosen schedule, and the arguments it passes to the driver."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve, field, frozen
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.ops.call_path import load_candidate
from argus.ops.matmul import CONFIGS, Config, candidate, choose, kernel
from argus.runtime import launch_gate, launches, tuning_db
from argus.runtime.cuda import driver
from argus.runtime.kernel_cache import CachedVerdict
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Call
from argus.runtime.tuning_db import Key, TunedConfig
from tests.runtime.fake_driver import FakeDriver

module = import_module("argus.ops.matmul")


KINDS = {"bfloat16": bfloat16, "float16": np.float16}


@frozen
class Card:
    """A device as torch has it: as good as its number."""

    index: int


@define
class Matrix:
    """As much of a tensor of torch as is used, in this process's memory. shift: bytes before its first element."""

    array: np.ndarray[Any, Any]
    dtype: str = "torch.bfloat16"
    device: Any = Card(0)
    is_cuda: bool = True
    requires_grad: bool = False
    shift: int = 0
    copies: list[str] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def mT(self) -> Self:  # noqa: N802 reason: torch's name
        return evolve(self, array=np.swapaxes(self.array, -1, -2))

    def __getitem__(self, item: int) -> Self:
        return evolve(self, array=self.array[item])

    def flatten(self, first: int, last: int) -> Self:
        assert (first, last) == (0, 1)
        return evolve(self, array=self.array.reshape(-1, *self.array.shape[2:]))

    def data_ptr(self) -> int:
        return self.array.ctypes.data + self.shift

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def contiguous(self) -> Self:
        return self if self.is_contiguous() else self.copied("contiguous")

    def clone(self) -> Self:
        return self.copied("clone")

    def copied(self, how: str) -> Self:
        if self.copies is not None:
            self.copies.append(how)
        return evolve(self, array=aligned(self.array), shift=0)

    def zero_(self) -> Self:
        self.array[:] = 0
        return self

    def new_empty(self, shape: tuple[int, ...], *, dtype: object = None) -> Self:
        assert dtype in (None, self.dtype, np.float32)
        kind = np.float32 if dtype is np.float32 else self.array.dtype
        return evolve(self, array=aligned(np.full(shape, np.nan, kind)), shift=0, copies=None)


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins at a multiple of 16 bytes."""
    room = np.zeros(array.nbytes + 16, np.uint8)
    start = -room.ctypes.data % 16
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[:] = array
    return made


def matrix(rows: int, columns: int, seed: int = 0) -> Matrix:
    return batch((rows, columns), seed)


def batch(shape: tuple[int, ...], seed: int = 0, kind: str = "bfloat16") -> Matrix:
    held = np.random.default_rng(seed).integers(-2, 3, shape).astype(KINDS[kind])
    return Matrix(aligned(held), dtype=f"torch.{kind}")


def at(place: int, shape: tuple[int, ...], kind: type[Any]) -> np.ndarray[Any, Any]:
    """The tensor at an address."""
    held = np.ctypeslib.as_array((ctypes.c_uint16 * prod(shape)).from_address(place))
    return held.view(kind).reshape(shape)


@define
class Multiplying(FakeDriver):
    """Its kernels multiply dense operands, as their names say. maps: strides of those encoded, in bytes."""

    maps: list[list[int]] = field(factory=list[list[int]])

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> Any:  # noqa: ANN401, N802 reason: the driver's
        self.maps.append(arguments[4])
        return super().cuTensorMapEncodeTiled(*arguments)

    def cuLaunchKernelEx(self, *arguments: Any) -> None:  # noqa: ANN401, N802 reason: the driver's
        name: str = arguments[1]
        self.sizes = 4 if name.startswith("bmm") else 3
        self.kernel = partial(multiply, name)
        super().cuLaunchKernelEx(*arguments)


def multiply(name: str, arguments: list[int]) -> None:
    """C = A @ B^T. Sizes come in the order in which tensors name them, Z, M, K and N or, of A by columns, K ahead of M;
    with one A for all products, Z follows it.
    """
    a, b, c, *sizes = arguments
    shared, lies = "shared" in name, name.split("_")[1]
    a_turned, b_turned = (lies[0] == "t", lies[1] == "n") if lies in ("nn", "nt", "tn", "tt") else (False, False)
    batch = () if name.startswith("gemm") else (sizes.pop(2 if shared else 0),)
    k, m = (sizes[0], sizes[1]) if a_turned else (sizes[1], sizes[0])
    n, kind = sizes[2], np.float16 if "f16" in name else bfloat16
    ahead = () if shared else batch
    left = at(a, (*ahead, k, m) if a_turned else (*ahead, m, k), kind)
    right = at(b, (*batch, k, n) if b_turned else (*batch, n, k), kind)
    turned = np.swapaxes(left, -1, -2) if a_turned else left
    across = right if b_turned else np.swapaxes(right, -1, -2)
    at(c, (*batch, m, n), kind)[:] = (turned.astype(np.float64) @ across.astype(np.float64)).astype(kind)


def gpu(major: int) -> Callable[[int], SimpleNamespace]:
    return lambda _index: SimpleNamespace(name="Imagined GPU", major=major, minor=0)


def named(name: str) -> Callable[[int], str]:
    return lambda _index: name


def judging(verdict: str) -> Callable[[Kernel], CachedVerdict]:
    return lambda _kernel: CachedVerdict(verdict)


CUDA = SimpleNamespace(
    current_device=lambda: 0,
    get_device_name=named("Imagined GPU"),
    current_stream=lambda: SimpleNamespace(cuda_stream=7),
    get_device_properties=gpu(9),
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Multiplying]:
    """torch, a driver, and kernels that count as proved."""
    made = Multiplying(pointers=3)
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=CUDA, is_grad_enabled=lambda: False, float32=np.float32)
    )
    monkeypatch.setattr(driver, "bindings", lambda: made.raw)
    monkeypatch.setattr(launch_gate, "verify_cached", judging("proved"))
    module.clear_cache()
    yield made
    module.clear_cache()


def product(a: Matrix, b: Matrix) -> np.ndarray[Any, Any]:
    return (a.array.astype(np.float64) @ b.array.astype(np.float64)).astype(a.array.dtype)


# -- which schedule ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((1, 1, 1), "narrow"),
        ((4096, 4096, 4097), "narrow"),
        ((4096, 4100, 4096), "skinny_152"),
        ((16, 4100, 4096), "shares_16"),
        ((65, 4096, 4096), "shares_80"),
        ((129, 11008, 4096), "skinny_136"),
        ((1, 8, 8), "skinny"),
        ((16, 8192, 8192), "skinny"),
        ((128, 8192, 8192), "columns_64"),
        ((1024, 1024, 1024), "columns_64"),
        ((512, 7168, 2048), "columns_224"),
        ((4096, 14336, 4096), "clustered_bands"),
        ((8192, 8192, 8192), "clustered_bands"),
    ],
)
def test_the_shape_determines_the_schedule(shape: tuple[int, int, int], config: Config) -> None:
    assert choose(*shape) == config


@pytest.mark.parametrize("config", CONFIGS)
def test_every_schedule_is_a_shipped_kernel_of_the_same_claim(config: Config) -> None:
    traced = kernel(config)

    assert traced.target.name == "sm_90a"
    assert [buffer.name for buffer in traced.parameters] == ["A", "B", "C"]


# -- operands ------------------------------------------------------------------------------------------------

GOOD = matrix(3, 5)
ELSEWHERE = Card(1)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0], matrix(5, 2), "`a` is not a torch tensor, found list"),
        (np.zeros((3, 5)), matrix(5, 2), "`a` is on a device of type 1 of DLPack, expected CUDA"),
        (GOOD, evolve(matrix(5, 2), dtype="torch.float32"), "`b` expects elements of type torch.bfloat16"),
        (evolve(GOOD, array=np.zeros(3, bfloat16)), matrix(5, 2), "`a` expects 2 or 3 axes, found 1"),
        (evolve(GOOD, is_cuda=False, device="cpu"), matrix(5, 2), "`a` is on cpu"),
        (evolve(GOOD, requires_grad=True), matrix(5, 2), "`a` requires a gradient"),
        (GOOD, evolve(matrix(5, 2), device=ELSEWHERE), "`b` on"),
        (GOOD, matrix(4, 2), "`b` expects 5 rows"),
    ],
)
def test_operands_that_are_not_two_matrices_are_refused(
    a: Any,  # noqa: ANN401 reason: anything
    b: Any,  # noqa: ANN401 reason: anything
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: True))
    with pytest.raises(ArgusError) as refused:
        argus.matmul(a, b)

    assert refused.value.diagnostic.code == "E401"
    assert words in refused.value.diagnostic.message


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        argus.matmul(GOOD, matrix(5, 2), config="fast")
    assert refused.value.diagnostic.code == "E401"


# -- launches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 16, 8)], ids=str)
def test_the_product_is_launched_on_the_current_stream(fake: Multiplying, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = matrix(m, k), matrix(k, n, 1)

    found = argus.matmul(a, b)

    assert np.array_equal(found.array, product(a, b))
    assert [launch[8] for launch in fake.launches] == [7]


@define
class Gathering(Multiplying):
    """Its first kernel leaves a product in a workspace, its second hands it over. rooms: the workspaces' addresses."""

    rooms: list[int] = field(factory=list[int])

    def cuLaunchKernelEx(self, *arguments: Any) -> None:  # noqa: ANN401, N802 reason: the driver's
        first = arguments[1] == "partial_gemm"
        self.pointers, self.sizes = (3, 3) if first else (2, 3)
        self.kernel = self.leave if first else self.hand_over
        FakeDriver.cuLaunchKernelEx(self, *arguments)

    def leave(self, arguments: list[int]) -> None:
        a, b, part, m, k, n = arguments
        self.rooms.append(part)
        held = at(a, (m, k), bfloat16).astype(np.float32) @ at(b, (n, k), bfloat16).astype(np.float32).T
        summed(part, (m, n))[:] = held

    def hand_over(self, arguments: list[int]) -> None:
        part, c, m, _, n = arguments
        assert part == self.rooms[-1]
        at(c, (m, n), bfloat16)[:] = summed(part, (m, n)).astype(bfloat16)


def summed(place: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((ctypes.c_float * prod(shape)).from_address(place)).reshape(shape)


def test_a_program_is_launched_with_its_own_workspace(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two launches of one stream; each call allocates its workspace, like its result."""
    del fake
    made = Gathering(pointers=3)
    monkeypatch.setattr(driver, "bindings", lambda: made.raw)
    monkeypatch.setattr(launch_gate, "verify_program_cached", judging("proved"))
    a, b = matrix(96, 200), matrix(72, 200, 1)

    for seed in range(3):
        other = matrix(96, 200, seed)
        found = argus.matmul(other, b.mT, config="stream_bm64_bn64_stages4_chunks3_run2")
        assert np.array_equal(found.array, product(other, b.mT))

    assert [launch[0] for launch in made.launches] == ["partial_gemm", "reduce_tiles"] * 3
    assert [launch[1:4] for launch in made.launches[:2]] == [(6, 1, 1), (4, 4, 1)]
    assert {launch[8] for launch in made.launches} == {7}
    assert np.array_equal(argus.matmul(a, b.mT, config="stream_128_128_8_1").array, product(a, b.mT))


@pytest.mark.usefixtures("fake")
def test_a_program_without_a_proof_is_not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_gate, "verify_program_cached", judging("unknown"))
    with pytest.raises(ArgusError, match="is unknown and therefore not launched"):
        argus.matmul(matrix(96, 200), matrix(72, 200, 1).mT, config="stream_128_128_8_1")


def test_a_repeated_call_checks_addresses_only(fake: Multiplying) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1)
    first = argus.matmul(a, b.mT)
    calls = len(fake.calls)
    other = matrix(64, 8, 2)
    again = argus.matmul(other, b.mT)
    assert np.array_equal(first.array, product(a, b.mT))
    assert np.array_equal(again.array, product(other, b.mT))
    # The context once a thread, two maps or three for new addresses, and the launch.
    assert len(fake.calls) - calls <= 5
    before = len(fake.calls)
    shifted = evolve(matrix(64, 8, 3), shift=0)
    assert np.array_equal(argus.matmul(shifted, b.mT).array, product(shifted, b.mT))
    assert "cuCtxSetCurrent" not in fake.calls[before:]


@pytest.mark.usefixtures("fake")
def test_a_repeated_call_still_refuses_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(64, 8), matrix(16, 8, 1)
    argus.matmul(a, b.mT)
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: True)
    with pytest.raises(ArgusError, match="requires a gradient"):
        argus.matmul(evolve(a, requires_grad=True), b.mT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
def test_operands_are_read_in_place(fake: Multiplying, kind: str, *, a_turned: bool, b_turned: bool) -> None:
    copies: list[str] = []
    a = evolve(batch((16, 8) if a_turned else (8, 16), 1, kind), copies=copies)
    b = evolve(batch((24, 16) if b_turned else (16, 24), 2, kind), copies=copies)
    a, b = a.mT if a_turned else a, b.mT if b_turned else b

    for _ in range(2):  # the second time by what the first has prepared
        found = argus.matmul(a, b)
        assert np.array_equal(found.array, product(a, b))

    assert copies == []
    names = [launch[0] for launch in fake.launches]
    layout = ("t" if a_turned else "n") + ("t" if b_turned else "n")
    assert len(set(names)) == 1
    assert names[0].startswith("gemm_skinny" if layout == "nt" and kind == "bfloat16" else f"gemm_{layout}_")


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ((3, 8, 16), (3, 16, 24), "bmm_nn_"),
        ((8, 16), (3, 16, 24), "bmm_nn_shared_"),
        ((1, 8, 16), (3, 16, 24), "bmm_nn_shared_"),
        ((3, 8, 16), (16, 24), "gemm_nn_"),
        ((3, 8, 16), (1, 16, 24), "gemm_nn_"),
        ((1, 8, 16), (1, 16, 24), "gemm_nn_"),
        ((3, 5, 7), (3, 7, 9), "bmm_nn_narrow"),
    ],
)
def test_products_of_a_batch_are_one_launch(
    fake: Multiplying, a: tuple[int, ...], b: tuple[int, ...], name: str
) -> None:
    left, right = batch(a, 1), batch(b, 2)
    for _ in range(2):
        found = argus.matmul(left, right)
        assert np.array_equal(found.array, product(left, right))
    assert [launch[0][: len(name)] for launch in fake.launches] == [name, name]


def test_rows_of_a_wider_matrix_are_read_in_place(fake: Multiplying) -> None:
    copies: list[str] = []
    wide = matrix(8, 64)
    part = evolve(wide, array=wide.array[:, :16], copies=copies)

    argus.matmul(part, matrix(24, 16).mT)
    argus.matmul(evolve(wide, array=wide.array[:, :16].copy()), matrix(24, 16).mT)

    assert copies == []
    assert fake.maps[0] == [128]
    assert [32] in fake.maps


@pytest.mark.usefixtures("fake")
def test_operands_that_no_kernel_reads_in_place_are_copied() -> None:
    copies: list[str] = []
    wide = matrix(8, 64)
    apart = evolve(wide, array=wide.array[:, ::4], copies=copies)
    odd = evolve(wide, array=wide.array[:, :15], copies=copies)
    for a in (apart, odd):
        b = matrix(a.shape[1], 24)
        assert np.array_equal(argus.matmul(a, b).array, product(a, b))
    assert copies == ["contiguous", "contiguous"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (matrix(8, 16), batch((16, 8), kind="float16"), "`a` has elements of type torch.bfloat16"),
        (batch((2, 8, 16)), batch((3, 16, 8)), "the batch sizes must be equal"),
        (batch((2, 2, 8, 16)), matrix(16, 8), "`a` expects 2 or 3 axes, found 4"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_operands_that_are_not_batches_are_refused(a: Matrix, b: Matrix, words: str) -> None:
    with pytest.raises(ArgusError, match="matmul") as refused:
        argus.matmul(a, b)
    assert words in refused.value.diagnostic.message


def test_parameters_are_accepted_where_gradients_are_disabled(fake: Multiplying) -> None:
    argus.matmul(matrix(8, 16), evolve(matrix(8, 16), requires_grad=True).mT)

    assert len(fake.launches) == 1


def test_an_unaligned_matrix_is_copied(fake: Multiplying) -> None:
    copies: list[str] = []

    argus.matmul(evolve(matrix(8, 16), shift=2, copies=copies), matrix(8, 16).mT)

    assert copies == ["clone"]
    assert len(fake.launches) == 1


@pytest.mark.usefixtures("fake")
def test_empty_products_launch_nothing() -> None:
    assert argus.matmul(matrix(0, 8), matrix(8, 8)).shape == (0, 8)
    assert argus.matmul(matrix(8, 8), matrix(8, 0)).shape == (8, 0)
    assert (argus.matmul(matrix(3, 0), matrix(0, 4)).array == 0).all()


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


def test_a_schedule_that_does_not_support_the_shape_is_refused(fake: Multiplying) -> None:
    with pytest.raises(ArgusError) as refused:
        argus.matmul(matrix(8, 7), matrix(7, 8), config="cooperative")

    assert refused.value.diagnostic.code == "E405"
    assert "K % 8 == 0" in refused.value.diagnostic.message
    assert fake.launches == []


def test_another_gpu_is_refused(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CUDA, "get_device_properties", gpu(8))

    with pytest.raises(ArgusError) as refused:
        argus.matmul(matrix(3, 5), matrix(5, 7))
    assert refused.value.diagnostic.code == "E407"
    assert fake.launches == []


@pytest.mark.parametrize(
    ("verdict", "unproved", "launched"),
    [
        ("proved", "refuse", True),
        ("unknown", "refuse", False),
        ("unverified", "refuse", False),
        ("unknown", "allow", True),
        ("refuted", "allow", False),
    ],
)
def test_unproved_kernels_are_launched_only_on_request(
    fake: Multiplying,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    unproved: Unproved,
    launched: bool,
) -> None:
    monkeypatch.setattr(launch_gate, "verify_cached", judging(verdict))
    a, b = matrix(3, 5), matrix(5, 7)

    if launched:
        argus.matmul(a, b, unproved=unproved)
    else:
        with pytest.raises(ArgusError) as refused:
            argus.matmul(a, b, unproved=unproved)
        assert refused.value.diagnostic.code == "E413"
        assert verdict in refused.value.diagnostic.message
    assert bool(fake.launches) == launched


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
        assert np.array_equal(argus.matmul(a, b).array, product(a, b))

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
        assert np.array_equal(argus.matmul(a, b).array, product(a, b))

    assert made == [((64, 16), (16, 1), a.dtype)] * 2
    assert [launch[8] for launch in fake.launches] == [40, 40]


# -- stored search results -------------------------------------------------------------------------------------


def kept(config: str, shape: tuple[int, int, int]) -> None:
    tuning_db.store_choices("Imagined GPU", {Key(shape): TunedConfig(config, {"sustained": 1.0}, 2)})
    module.clear_cache()


def test_a_stored_choice_is_launched(fake: Multiplying) -> None:
    kept("hopper_bn128_stages3", (64, 16, 8))

    found = argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)

    assert np.array_equal(found.array, product(matrix(64, 8), matrix(16, 8, 1).mT))
    assert fake.symbols == ["gemm_hopper_bn128_stages3"]


@pytest.mark.parametrize("config", ["nothing", "hopper_bn250", "cdna3"])
def test_a_stored_choice_that_does_not_build_falls_back_to_the_model(fake: Multiplying, config: str) -> None:
    kept(config, (64, 16, 8))

    argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)

    assert fake.symbols == [f"gemm_{choose(64, 16, 8)}"]


def test_a_stored_choice_that_does_not_support_the_shape_falls_back_to_the_model(fake: Multiplying) -> None:
    kept("cooperative", (8, 8, 7))

    argus.matmul(matrix(8, 7), matrix(8, 7).mT)

    assert fake.symbols[-1] == "gemm_narrow"
    assert len(fake.launches) == 1


def test_a_fault_on_the_gpu_is_not_tried_again(fake: Multiplying) -> None:
    kept("hopper_bn128_stages3", (64, 16, 8))
    fake.fails["cuLaunchKernelEx"] = "ILLEGAL_ADDRESS"

    with pytest.raises(ArgusError) as failed:
        argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)
    assert failed.value.diagnostic.code == "E409"
    assert fake.calls.count("cuLaunchKernelEx") == 1


# -- arrays of other libraries, and captures -------------------------------------------------------------------


@define
class Foreign:
    """An array of a library that exchanges tensors as they are."""

    of: Matrix

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: object = None) -> object:
        del stream
        return self.of

    def __array_namespace__(self) -> object:
        return SimpleNamespace(from_dlpack=Foreign)


def of(foreign: Foreign) -> Matrix:
    return foreign.of


def test_other_libraries_arrays_give_a_result_of_the_first_ones_type(
    fake: Multiplying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["torch"], "from_dlpack", of, raising=False)
    a, b = matrix(64, 8), matrix(16, 8, 1).mT

    both = argus.matmul(Foreign(a), Foreign(b))
    mixed = argus.matmul(a, Foreign(b))

    assert isinstance(both, Foreign)
    assert isinstance(mixed, Matrix)
    assert np.array_equal(both.of.array, product(a, b))
    assert np.array_equal(mixed.array, product(a, b))
    assert len(fake.launches) == 2


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
