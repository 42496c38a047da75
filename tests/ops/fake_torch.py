"""A fake torch and a fake driver in host memory, whose kernels multiply: what `argus.matmul` needs without a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import prod
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from attrs import define, evolve, field, frozen
from ml_dtypes import bfloat16

from argus.core.ir import Kernel
from argus.runtime.kernel_cache import CachedVerdict
from tests.runtime.fake_driver import FakeDriver

matmul_module = import_module("argus.ops.matmul")
KINDS = {"bfloat16": bfloat16, "float16": np.float16}


@frozen
class Card:
    """A torch device, identified by its index."""

    index: int


@define
class Matrix:
    """The part of torch's tensor that `argus.matmul` uses, in host memory.

    shift: bytes added to the address of its first element. copies: receives the name of each method that copied.
    """

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

    def view(self, *shape: int) -> Self:
        return evolve(self, array=self.array.reshape(shape))

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
        assert dtype in (None, self.dtype, np.float32, "torch.float32")
        single = dtype in (np.float32, "torch.float32")
        made = aligned(np.full(shape, np.nan, np.float32 if single else self.array.dtype))
        return evolve(self, array=made, dtype="torch.float32" if single else self.dtype, shift=0, copies=None)


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins at a multiple of 16 bytes."""
    room = np.zeros(array.nbytes + 16, np.uint8)
    start = -room.ctypes.data % 16
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def matrix(rows: int, columns: int, seed: int = 0) -> Matrix:
    return batch((rows, columns), seed)


def batch(shape: tuple[int, ...], seed: int = 0, kind: str = "bfloat16") -> Matrix:
    held = np.random.default_rng(seed).integers(-2, 3, shape).astype(KINDS[kind])
    return Matrix(aligned(held), dtype=f"torch.{kind}")


def tensor_at(place: int, shape: tuple[int, ...], kind: type[Any]) -> np.ndarray[Any, Any]:
    """The tensor of 16-bit elements at an address."""
    held = np.ctypeslib.as_array((ctypes.c_uint16 * prod(shape)).from_address(place))
    return held.view(kind).reshape(shape)


@define
class Multiplying(FakeDriver):
    """A driver whose kernels multiply dense operands in the layout that their names state.

    maps: strides of each encoded tensor map, in bytes.
    """

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
    """Compute C = A @ B^T. The sizes come in the order in which the tensors name them.

    That is Z, M, K, N; K precedes M if A is stored by columns; Z follows M and K if one A is shared by all products.
    """
    a, b, c, *sizes = arguments
    shared, lies = "shared" in name, name.split("_")[1]
    a_turned, b_turned = (lies[0] == "t", lies[1] == "n") if lies in ("nn", "nt", "tn", "tt") else (False, False)
    batch = () if name.startswith("gemm") else (sizes.pop(2 if shared else 0),)
    k, m = (sizes[0], sizes[1]) if a_turned else (sizes[1], sizes[0])
    n, kind = sizes[2], np.float16 if "f16" in name else bfloat16
    ahead = () if shared else batch
    left = tensor_at(a, (*ahead, k, m) if a_turned else (*ahead, m, k), kind)
    right = tensor_at(b, (*batch, k, n) if b_turned else (*batch, n, k), kind)
    turned = np.swapaxes(left, -1, -2) if a_turned else left
    across = right if b_turned else np.swapaxes(right, -1, -2)
    tensor_at(c, (*batch, m, n), kind)[:] = (turned.astype(np.float64) @ across.astype(np.float64)).astype(kind)


def gpu(major: int) -> Callable[[int], SimpleNamespace]:
    return lambda _index: SimpleNamespace(name="Imagined GPU", gcnArchName="Imagined GPU", major=major, minor=0)


def named(name: str) -> Callable[[int], str]:
    return lambda _index: name


def verified_as(verdict: str) -> Callable[[Kernel], CachedVerdict]:
    return lambda _kernel: CachedVerdict(verdict)


CUDA = SimpleNamespace(
    current_device=lambda: 0,
    get_device_name=named("Imagined GPU"),
    current_stream=lambda: SimpleNamespace(cuda_stream=7),
    get_device_properties=gpu(9),
)


def expected_product(a: Matrix, b: Matrix) -> np.ndarray[Any, Any]:
    return (a.array.astype(np.float64) @ b.array.astype(np.float64)).astype(a.array.dtype)


ELSEWHERE = Card(1)
