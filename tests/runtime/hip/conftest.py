"""The stand-in for the HIP runtime as a fixture."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.hip.stub import Stub, compile_stub


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_stub(tmp_path_factory.mktemp("hip"))


@pytest.fixture
def stub(library: Path) -> Iterator[Stub]:
    made = Stub(ctypes.CDLL(str(library)))
    yield made
    made.library.stub_clear()
