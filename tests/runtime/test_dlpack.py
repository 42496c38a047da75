"""Arrays of other libraries, which exchange real DLPack capsules with a stand-in for torch."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.runtime.dlpack import from_torch, is_foreign, to_torch

CPU, CUDA, ROCM = 1, 2, 10


@define
class Foreign:
    """An array of a library, said to be on a GPU. array: its bits, of 16 each."""

    array: np.ndarray[Any, Any]
    kind: int = CUDA
    namespace: object = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **asked: object) -> Any:  # noqa: ANN401 reason: a capsule
        del asked
        return self.array.__dlpack__()


@define
class Standard(Foreign):
    """One that names its namespace, as the array standard has it."""

    def __array_namespace__(self) -> object:
        return self.namespace


@define
class OnCpu:
    """What NumPy may take: the same capsule, and the truth about its device."""

    of: Any

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, **asked: object) -> Any:  # noqa: ANN401 reason: a capsule
        del asked
        return self.of.__dlpack__()


@define
class Tensor:
    """As much of a tensor of torch as is used."""

    array: np.ndarray[Any, Any]

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **asked: object) -> Any:  # noqa: ANN401 reason: a capsule
        del asked
        return self.array.view(np.uint16).__dlpack__()


def torch_takes(value: Any) -> Tensor:  # noqa: ANN401 reason: anything with a capsule
    return Tensor(np.from_dlpack(OnCpu(value)).view(bfloat16))


def library_takes(tensor: Any) -> Foreign:  # noqa: ANN401 reason: anything with a capsule
    return Foreign(np.from_dlpack(OnCpu(tensor)))


def refusing(_value: object) -> Foreign:
    raise BufferError("no bfloat16 here")


@pytest.fixture(autouse=True)
def _torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=torch_takes))


def bits() -> np.ndarray[Any, Any]:
    return np.arange(6, dtype=np.uint16).reshape(2, 3)


def library(monkeypatch: pytest.MonkeyPatch, take: object, *path: str) -> None:
    """The library that `Foreign` is of, with `from_dlpack` in a module of it."""
    inner = SimpleNamespace(from_dlpack=take)
    for part in reversed(path):
        inner = SimpleNamespace(**{part: inner})
    monkeypatch.setitem(sys.modules, Foreign.__module__.partition(".")[0], inner)


def test_is_foreign() -> None:
    assert is_foreign(Foreign(bits()))
    assert is_foreign(np.zeros(3))
    assert not is_foreign(Tensor(bits()))
    assert not is_foreign([1.0])


@pytest.mark.parametrize("kind", [CUDA, ROCM])
def test_to_torch_does_not_copy(kind: int) -> None:
    array = bits()
    found = to_torch(Foreign(array, kind), "a")

    assert isinstance(found, Tensor)
    assert found.data_ptr() == array.ctypes.data
    assert found.array.shape == (2, 3)


@pytest.mark.parametrize("path", [(), ("dlpack",), ("utils", "dlpack")])
def test_a_result_is_converted_by_the_operands_library(monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]) -> None:
    library(monkeypatch, library_takes, *path)
    tensor = Tensor(bits().view(bfloat16))

    found = from_torch(tensor, Foreign(bits()))

    assert isinstance(found, Foreign)
    assert found.array.ctypes.data == tensor.data_ptr()
    assert np.array_equal(found.array, bits())


def test_the_namespace_of_an_array_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, refusing)
    like = Standard(bits(), namespace=SimpleNamespace(from_dlpack=library_takes))

    assert isinstance(from_torch(Tensor(bits().view(bfloat16)), like), Foreign)


def test_a_namespace_without_from_dlpack_falls_back_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, library_takes)
    like = Standard(bits(), namespace=SimpleNamespace(from_dlpack=refusing))

    assert isinstance(from_torch(Tensor(bits().view(bfloat16)), like), Foreign)


def test_a_library_that_accepts_no_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, refusing)
    with pytest.raises(ArgusError, match="no bfloat16 here") as refused:
        from_torch(Tensor(bits().view(bfloat16)), Foreign(bits()))
    assert refused.value.diagnostic.code == "E401"


def test_an_array_of_the_host_is_refused() -> None:
    with pytest.raises(ArgusError, match="`b` is on a device of type 1 of DLPack") as refused:
        to_torch(Foreign(bits(), CPU), "b")
    assert refused.value.diagnostic.code == "E401"


def test_arrays_that_torch_does_not_accept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=refusing))
    with pytest.raises(ArgusError, match="torch does not accept `a`"):
        to_torch(Foreign(bits()), "a")


def test_a_missing_torch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: ModuleType | None = None
    monkeypatch.setitem(sys.modules, "torch", absent)
    with pytest.raises(ArgusError, match="passes through torch") as refused:
        to_torch(Foreign(bits()), "a")
    assert refused.value.diagnostic.help == "pip install torch"
