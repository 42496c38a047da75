"""Code of other compilers that calls functions, reads constants, spills, and uses pointers to any memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from argus.interp.gfx942.code_object import CodeObject, read_code_object
from argus.interp.gfx942.dispatch import Tensor
from argus.interp.gfx942.launch import Executed, execute
from argus.interp.gfx942.line_table import line_table
from tests.runtime.machine.hip_code import compiled

SOURCE = Path(__file__).with_name("plain_memory.hip")
COUNT = 100
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    return read_code_object(compiled(SOURCE, tmp_path_factory.mktemp("memory")).read_bytes())


def run(code: CodeObject, name: str, held: Array, kind: type[np.generic], *more: int) -> tuple[Array, Executed]:
    arguments = (Tensor("in", held), Tensor("out", np.zeros(COUNT, kind), written=True), *more)
    done = execute(code, name, [1 if "pointers" in name else 2], 64, arguments)
    return done.tensors["out"], done


def whole() -> Array:
    return np.random.default_rng(1).integers(-8, 9, COUNT).astype(np.float32)


def test_functions_are_called_and_constants_of_the_code_object_are_read(code: CodeObject) -> None:
    held, at = whole(), np.arange(COUNT)
    found, done = run(code, "calls", held, np.float32, COUNT)

    assert not done.findings
    assert (found == 2 * held + 2.0 ** ((at + 1) % 8) + at + 6).all()


@pytest.mark.parametrize("which", range(3))
def test_pointers_may_be_to_any_memory(code: CodeObject, which: int) -> None:
    held, thread = whole(), np.arange(64)
    found, done = run(code, "pointers_right", held, np.float32, 50, which)
    place = (thread + which) % 8

    assert not done.findings
    assert (found[:64] == (held[place] if which < 2 else held[(thread + place) % 50])).all()


def test_a_private_array_that_is_not_written_is_found(code: CodeObject) -> None:
    _, done = run(code, "pointers_unwritten", whole(), np.float32, 50, 2)
    (found,) = done.findings
    file, line = line_table(code).place_of(found.address)

    assert found.kind == "uninitialised register"
    assert file == str(SOURCE)
    assert "fault of private" in SOURCE.read_text("utf-8").splitlines()[line - 1]


def test_f64_is_rounded_as_on_the_cpu(code: CodeObject) -> None:
    held = np.random.default_rng(2).standard_normal(COUNT) * 100
    found, done = run(code, "doubles", held, np.float64, COUNT)
    wanted = np.sqrt(np.abs(held)) / (held * held + 1)

    assert not done.findings
    assert (np.abs(found - wanted) <= 2.0**-51 * wanted).all()


def test_bytes_and_long_divisions(code: CodeObject) -> None:
    held = np.random.default_rng(3).integers(0, 1 << 32, COUNT, np.uint32)
    found, done = run(code, "bytes", held, np.int32, COUNT)

    assert not done.findings
    for at, v in enumerate(map(int, held)):
        high, low = v >> 16, v >> 8 & 255
        product = (low - (low >> 7 << 8)) * (high & 255) + (high - (high >> 15 << 16)) + v % 7
        assert int(found[at]) == product + (v * 123456789 // ((at & 15) + 3) >> 32)


def test_jumps_go_by_a_table_and_a_trap_is_found(code: CodeObject) -> None:
    held, at = np.arange(COUNT, dtype=np.int32), np.arange(COUNT)
    found, done = run(code, "jumps", held, np.int32, COUNT)
    assert not done.findings
    assert (found == np.where(at < 64, at * 3, at ^ 55)).all()
    _, stopped = run(code, "jumps", held + 7, np.int32, COUNT)
    assert {each.kind for each in stopped.findings} == {"trap"}


@pytest.mark.nightly
@pytest.mark.parametrize("options", ["-O0", "-O1", "-Os", "-O2 -fgpu-flush-denormals-to-zero"])
def test_other_options_compute_the_same(options: str, tmp_path: Path) -> None:
    made = read_code_object(compiled(SOURCE, tmp_path, options.split()).read_bytes())
    held, at = whole(), np.arange(COUNT)
    found, done = run(made, "calls", held, np.float32, COUNT)

    assert not done.findings
    assert (found == 2 * held + 2.0 ** ((at + 1) % 8) + at + 6).all()
