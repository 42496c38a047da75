"""The stand-in for the HIP runtime as a fixture, and operators on it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from argus.runtime.hip.driver import LIBRARY
from tests.runtime.hip.rocm_torch import RocmTorch
from tests.runtime.hip.stub import Stub, compile_stub

_KEEPING = ("matmul", "attention", "row_calls", "scaled_matmul", "text_kernels", "route", "grouped_matmul")
"""The operators that keep loaded kernels and tensors on the device."""

_RECORDED = "grouped_gradient", "moe_gradient"
"""Those with gradients, which keep a class of torch."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_stub(tmp_path_factory.mktemp("hip"))


@pytest.fixture
def stub(library: Path) -> Iterator[Stub]:
    made = Stub(ctypes.CDLL(str(library)))
    yield made
    made.library.stub_clear()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is built and proved once, for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def rocm(stub: Stub, library: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RocmTorch]:
    """torch on the stand-in, whose launches execute machine code; kernels are built and proved."""
    made = RocmTorch(stub)
    monkeypatch.setenv(LIBRARY, str(library))
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(cache))
    monkeypatch.setenv("ARGUS_STATE_DIR", str(cache / "state"))
    monkeypatch.setitem(sys.modules, "torch", made.module())
    _forget()
    yield made
    _forget()
    made.release()


def _forget() -> None:
    """Drop what operators keep of a torch and its device."""
    for name in _KEEPING:
        import_module(f"argus.ops.{name}").clear_cache()
    for name in _RECORDED:
        import_module(f"argus.ops.{name}")._function.cache_clear()
