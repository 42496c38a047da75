"""The instruction tests: every instruction has one, and the interpreter agrees with NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.atoms.sm_90a import ATOMS, reductions
from argus.core.dtype import DTYPES
from argus.core.ir import Copy, Mma, walk
from argus.testing.instructions import Trial, drawn, expected, trials

Array = npt.NDArray[Any]


@cache
def by_name() -> dict[str, Trial]:
    return {each.what: each for each in trials()}


def starting(*heads: str) -> list[str]:
    return [what for what in by_name() if what.startswith(heads)]


def run(what: str) -> tuple[dict[str, Array], Array]:
    """Inputs and result on the first draw, without a complaint of the interpreter's."""
    made = by_name()[what]
    inputs = drawn(made, made.draws[0])
    found = expected(made, inputs)
    assert found.faults == ()
    return inputs, found.result


def same(found: Array, wanted: Array) -> bool:
    """Bit for bit."""
    word = np.dtype(f"u{found.dtype.itemsize}")
    return found.dtype == wanted.dtype and np.array_equal(
        np.ascontiguousarray(found).view(word), np.ascontiguousarray(wanted).view(word)
    )


MOVES = [atom.name for atom in ATOMS if atom.name.startswith(("ld_", "st_"))]


@pytest.mark.share(3)
def test_every_instruction_but_reductions_is_tried() -> None:
    used = {
        stmt.atom.name for each in by_name().values() for stmt in walk(each.kernel.body) if isinstance(stmt, Copy | Mma)
    }
    assert {atom.name for atom in ATOMS} - used == {atom.name for atom in reductions.ATOMS}


def test_names_are_their_own_and_inputs_are_fixed() -> None:
    made = list(by_name().values())
    assert len({each.name for each in made}) == len(made)
    for draw in ("integers", "floats", "bits"):
        first, second = drawn(made[0], draw), drawn(made[0], draw)
        assert all(same(first[name], second[name]) for name in first)
    assert not same(drawn(made[0], "bits")["A"], drawn(made[0], "bits", seed=1)["A"])


# -- moves ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("atom", MOVES)
def test_a_load_or_store_moves_bits(atom: str) -> None:
    inputs, result = run(atom)
    assert same(result, inputs["A"])


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
def test_beyond_the_edge_a_load_fills_and_a_store_leaves(bits: int) -> None:
    inputs, result = run(f"ld_global_b{bits} cut")
    assert same(result[:36], inputs["A"][64:])
    assert (result[36:] == 1.5).all()
    inputs, result = run(f"st_global_b{bits} cut")
    assert same(result[64:], inputs["A"][64:])
    assert np.isnan(result[:64].astype(np.float32)).all()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_copy_past_the_registers_fills_with_zeros(size: int) -> None:
    inputs, result = run(f"cp_async_{size}")
    assert same(result, inputs["A"])
    inputs, result = run(f"cp_async_{size} cut")
    assert same(result[:36], inputs["A"][64:])
    assert not result[36:].view(np.uint16).any()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", ["", "_trans"])
def test_matrices_move_as_they_lie(count: int, turned: str) -> None:
    (what,) = (each for each in starting(f"ldmatrix_x{count}{turned} "))
    inputs, result = run(what)
    assert same(result, inputs["A"][:, -8:])
    (what,) = (each for each in starting(f"stmatrix_x{count}{turned} "))
    inputs, result = run(what)
    wanted = inputs["A"].copy()
    wanted[:, -8:] = inputs["A"][:, :8]
    assert same(result, wanted)


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
@pytest.mark.parametrize("span", ["", "_sw32", "_sw64", "_sw128"])
def test_a_box_is_cut_at_the_tensors_end(axes: int, span: str) -> None:
    inputs, result = run(f"tma_load_{axes}d{span}")
    place = (1, 2, 1)[: axes - 2]
    inside = inputs["A"][place][64:, result.shape[1] :]
    assert inside.shape == (36, 8)
    assert same(result[:36, :8], inside)
    assert not result[36:].view(np.uint16).any()
    assert not result[:, 8:].view(np.uint16).any()
    inputs, result = run(f"tma_store_{axes}d{span}")
    columns = inputs["A"].shape[1]
    assert same(result[place][64:, columns:], inputs["A"][:36, :8])
    rest = result.copy()
    rest[place][64:, columns:] = np.nan
    assert np.isnan(rest.astype(np.float32)).all()


def test_a_run_of_bytes() -> None:
    inputs, result = run("bulk_load_1d")
    assert same(result, inputs["A"][512:1024])
    inputs, result = run("bulk_store_1d")
    assert same(result[512:1024], inputs["A"])
    assert np.isnan(result[1024:].astype(np.float32)).all()


# -- arithmetic ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_arithmetic_rounds_once_an_operation(dtype: str) -> None:
    kind = next(each for each in DTYPES if each.name == dtype).numpy
    made = by_name()[f"fused {dtype}"]
    inputs = drawn(made, "floats")
    a, b = inputs["A"].astype(np.float32), inputs["B"].astype(np.float32)
    product = (a * b).astype(kind).astype(np.float32)
    assert same(expected(made, inputs).result, (product + a).astype(kind))


def test_a_conversion_rounds_to_even() -> None:
    made = by_name()["f32 to bf16"]
    inputs = {"A": np.full((64, 16), 1 + 2.0**-8, np.float32)}
    inputs["A"][0] = 1 + 3 * 2.0**-8
    result = expected(made, inputs).result.astype(np.float32)
    assert (result[1:] == 1).all()
    assert (result[0] == 1 + 2.0**-6).all()


# -- products ------------------------------------------------------------------------------------------------


def test_a_matrix_instruction_of_a_warp_adds_a_product() -> None:
    for what in ("mma_m16n8k16_bf16", "mma_m16n8k16_f16"):
        inputs, result = run(what)
        a, b = (inputs[name].astype(np.float64) for name in "AB")
        assert np.array_equal(result, a @ b.T + inputs["D"])


def matrix(tile: Array, rows: int, k: int, *, turned: bool) -> Array:
    """The matrix that a kernel takes from a tile: the second part down where there are two, the last along rows."""
    down, across = (k, rows) if turned else (rows, k)
    first = down if tile.shape[0] >= 2 * down else 0
    found = tile[first : first + down, tile.shape[1] - across :].astype(np.float64)
    return found.T if turned else found


def product(what: str, inputs: dict[str, Array]) -> Array:
    """What NumPy makes of the inputs, by the words of the kernel's name."""
    name = what.split(" ", maxsplit=1)[0]
    n, depth = (int(number) for number in name.removeprefix("wgmma_m64n").split("_")[0].split("k"))
    words = what.split(" ")
    depth *= int(words[words.index("steps") + 1]) if "steps" in words else 1
    a = inputs["A"].astype(np.float64) if "_rs" in name else matrix(inputs["A"], 64, depth, turned="a mn" in what)
    b = matrix(inputs["B"], n, depth, turned="b mn" in what)
    return a @ b.T + inputs.get("D", np.zeros(1))


@pytest.mark.share(6)
@pytest.mark.parametrize("family", ["bf16_ss", "bf16_rs", "f16_ss", "f16_rs", "e4m3_ss", "e4m3_rs"])
def test_a_matrix_instruction_of_a_warpgroup_adds_a_product(family: str) -> None:
    """Every layout of operands, and the smallest and largest extents."""
    found = [what for what in starting("wgmma") if family in what]
    chosen = [what for what in found if "steps" in what or " mn" in what or "n8k" in what or "n256k" in what]
    assert len(chosen) >= 5
    for what in chosen:
        inputs, result = run(what)
        assert np.array_equal(result, product(what, inputs)), what


def test_sums_of_sizes_bound_what_rounding_may_do() -> None:
    made = by_name()["wgmma_m64n8k16_f32_bf16_ss span 32"]
    inputs = drawn(made, "floats")
    found = expected(made, inputs)
    exact = product(made.what, inputs)
    assert found.scale is not None
    assert (np.abs(exact) <= found.scale).all()
    assert (np.abs(found.result - exact) <= 2.0**-20 * found.scale).all()
