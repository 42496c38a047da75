"""`argus.grouped_matmul` on an AMD GPU's stand-in: tiles listed, guarded, multiplied by proved machine code."""

from __future__ import annotations

from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.grouped_tiles import count_of, tiles_of
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor, gradients

OPERATORS: Any = argus
OPERATOR: Any = import_module("argus.ops.grouped_matmul")
FNUZ = "torch.float8_e4m3fnuz"
GUARDS = "grouped_nt_interleaved_64__guards"
"""Checks all integers in one launch."""


def offsets(rocm: RocmTorch, counts: list[int]) -> Tensor:
    return rocm.tensor(np.array([0, *accumulate(counts)]), "torch.int32")


def expected(a: Tensor, b: Tensor, counts: list[int]) -> np.ndarray[Any, Any]:
    of_rows = b.wide[np.repeat(np.arange(len(counts)), counts)]
    return np.einsum("rk,rkn->rn", a.wide, of_rows).astype(a.array.dtype)


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize("counts", [[30, 0, 70], [0, 0, 65, 0, 1], [3]], ids=str)
def test_each_row_meets_its_own_expert(rocm: RocmTorch, counts: list[int]) -> None:
    b = rocm.whole(len(counts), 40, 72, seed=1).mT
    for seed, given in enumerate((counts, counts[::-1])):  # the second call is known to be like the first
        a = rocm.whole(sum(counts), 72, seed=seed)
        found = OPERATORS.grouped_matmul(a, b, offsets(rocm, given))
        np.testing.assert_array_equal(found.array, expected(a, b, given))
    assert len(OPERATOR._READY) == 1
    assert [name for name, _ in rocm.stub.launches] == ["grouped_tiles", GUARDS, "grouped_nt_interleaved_64_"] * 2
    assert not rocm.stub.findings


@pytest.mark.nightly
@pytest.mark.parametrize("config", ["interleaved_128", "interleaved"])
def test_row_major_matrices_of_f16_have_a_kernel_of_their_own(rocm: RocmTorch, config: str) -> None:
    counts = [5, 140, 0]
    a = rocm.whole(sum(counts), 24, dtype="torch.float16")
    b = rocm.whole(len(counts), 24, 136, seed=1, dtype="torch.float16")
    found = OPERATORS.grouped_matmul(a, b, offsets(rocm, counts), config=config)
    np.testing.assert_array_equal(found.array, expected(a, b, counts))
    assert rocm.stub.launches[-1][0] == f"grouped_nn_f16_{config}_"
    assert not rocm.stub.findings


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize(
    ("counts", "dtype", "column_major"),
    [([30, 0, 70], "torch.bfloat16", True), ([0, 3], "torch.float16", False)],
    ids=str,
)
def test_gradients_are_those_of_each_expert(
    rocm: RocmTorch, counts: list[int], dtype: str, *, column_major: bool
) -> None:
    """Exactly, beside rows of NaN."""
    a = rocm.whole(sum(counts), 72, dtype=dtype)
    b = rocm.whole(len(counts), *((40, 72) if column_major else (72, 40)), seed=1, dtype=dtype)
    b = b.mT if column_major else b
    a.requires_grad = b.requires_grad = True
    found = OPERATORS.grouped_matmul(a, b, offsets(rocm, counts))
    np.testing.assert_array_equal(found.array, expected(a, b, counts))

    given = rocm.whole(sum(counts), 40, seed=2, dtype=dtype)
    of_a, of_b, *_ = gradients(given, (True, True, False, False))
    np.testing.assert_array_equal(of_a.array, expected(given, b.mT, counts))
    ends = np.cumsum(counts)
    for e, (count, end) in enumerate(zip(counts, ends, strict=True)):
        rows = slice(end - count, end)
        wanted = a.wide[rows].T @ given.wide[rows]
        np.testing.assert_array_equal(of_b.array[e], wanted.astype(of_b.array.dtype))
    names = [name for name, _ in rocm.stub.launches if "__guard" not in name]
    assert names[-1] == "multiply_in_place_"
    assert not rocm.stub.findings


@pytest.mark.share(340, among="operators on the stand-in")
def test_operands_with_gaps_are_copied(rocm: RocmTorch) -> None:
    counts, wide, many = [9, 2], rocm.whole(11, 48), rocm.whole(4, 16, 24, seed=1)
    a = Tensor(wide.array[:, :24], wide.dtype, placed=rocm.placed)
    b = Tensor(many.array[::2], many.dtype, placed=rocm.placed).mT
    found = OPERATORS.grouped_matmul(a, b, offsets(rocm, counts))
    np.testing.assert_array_equal(found.array, expected(a, b, counts))
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize(
    ("counts", "config"), [([30, 0, 70], "interleaved_64"), ([3, 200], "interleaved_128")], ids=str
)
def test_operands_of_8_bits_have_scales_of_blocks(rocm: RocmTorch, counts: list[int], config: str) -> None:
    """Exactly: scales are powers of two."""
    random, (rows, depth, columns) = np.random.default_rng(0), (sum(counts), 272, 136)
    a = rocm.whole(rows, depth, dtype=FNUZ)
    b = rocm.whole(len(counts), columns, depth, seed=1, dtype=FNUZ)
    shapes = (rows, 3), (len(counts), 3, 2)
    of_a, of_b = (rocm.tensor(2.0 ** random.integers(-1, 2, shape), "torch.float32") for shape in shapes)
    found = OPERATORS.grouped_matmul(a, b.mT, offsets(rocm, counts), scale_a=of_a, scale_b=of_b, config=config)

    scaled = a.wide * np.repeat(of_a.wide, 128, 1)[:, :depth]
    of_columns = np.repeat(np.repeat(of_b.wide, 128, 1)[:, :depth], 128, 2)[:, :, :columns]
    weights = (b.wide.mT * of_columns)[np.repeat(np.arange(len(counts)), counts)]
    np.testing.assert_array_equal(found.array, np.einsum("rk,rkn->rn", scaled, weights).astype(found.array.dtype))
    assert rocm.stub.launches[-1][0] == f"grouped_fp8_fnuz_blocks_{config}_"
    assert not rocm.stub.findings


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize(
    ("starts", "element"), [([0, 9, 8, 40], "starts[1] = 9"), ([1, 3, 9, 40], "starts[0] = 1"), ([0, 3, 9, 41], "41")]
)
def test_wrong_offsets_are_told_of_and_stop_the_device(rocm: RocmTorch, starts: list[int], element: str) -> None:
    a, b = rocm.whole(40, 8), rocm.whole(3, 8, 8, seed=1).mT
    with pytest.raises(ArgusError) as told:
        OPERATORS.grouped_matmul(a, b, rocm.tensor(np.array(starts), "torch.int32"))
    assert told.value.diagnostic.code == "E402"
    assert element in told.value.diagnostic.message
    assert "grouped_nt_interleaved_64_" not in [name for name, _ in rocm.stub.launches]
    rocm.stub.library.stub_stop(0)


@pytest.mark.share(340, among="operators on the stand-in")
@pytest.mark.parametrize(
    "spoilt", ["a tile of two experts", "an expert that there is not", "more rows than a tile has"]
)
def test_a_wrong_list_of_tiles_is_not_computed_with(
    rocm: RocmTorch, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    counts = [30, 20, 40]

    def wrong(starts: Tensor, rows: int, height: int) -> tuple[Tensor, Tensor]:
        firsts, owners = tiles_of(starts, rows, height)
        match spoilt:
            case "a tile of two experts":
                firsts.array[1] -= 1
            case "an expert that there is not":
                owners.array[-1] = 3
            case _:
                firsts.array[1] = firsts.array[2] = firsts.array[3] = 90
        return firsts, owners

    monkeypatch.setattr("argus.ops.grouped_matmul.tiles_of", wrong)
    a, b = rocm.whole(sum(counts), 8), rocm.whole(3, 8, 8, seed=1).mT
    with pytest.raises(ArgusError) as told:
        OPERATORS.grouped_matmul(a, b, offsets(rocm, counts))
    assert told.value.diagnostic.code == "E402"
    assert "tile_" in told.value.diagnostic.message
    assert "grouped_nt_interleaved_64_" not in [name for name, _ in rocm.stub.launches]
    rocm.stub.library.stub_stop(0)


@pytest.mark.share(3)
@pytest.mark.parametrize("counts", [[0, 1, 64, 65, 0, 200], [0] * 5, [7] * 1030], ids=["few", "none", "many"])
def test_tiles_are_those_that_the_host_finds(rocm: RocmTorch, counts: list[int]) -> None:
    given, height = offsets(rocm, counts), 64
    starts = given.array.tolist()
    tiles = [(r, e) for e, count in enumerate(counts) for r in range(starts[e], starts[e] + count, height)]
    tiles += [(starts[-1], len(counts) - 1)] * (count_of(starts[-1], len(counts), height) - len(tiles))
    firsts, owners = tiles_of(given, starts[-1], height)
    assert firsts.array.tolist() == [*(r for r, _ in tiles), starts[-1]]
    assert owners.array.tolist() == [e for _, e in tiles]
    assert not rocm.stub.findings


def test_what_has_no_kernel_there_is_refused(rocm: RocmTorch) -> None:
    a, b = rocm.whole(40, 8), rocm.whole(3, 8, 8, seed=1).mT
    with pytest.raises(ArgusError, match="there is no schedule `columns_256`") as refused:
        OPERATORS.grouped_matmul(a, b, offsets(rocm, [40, 0, 0]), config="columns_256")
    assert refused.value.diagnostic.help == "choose one of interleaved, interleaved_128, interleaved_64"
    eight = [rocm.whole(*each, dtype="torch.float8_e4m3fn") for each in ((40, 16), (3, 16, 8))]
    scales = {"scale_a": rocm.normal(40, 1), "scale_b": rocm.normal(3, 1, 1)}
    with pytest.raises(ArgusError, match="with operands of e4m3") as refused:
        OPERATORS.grouped_matmul(*eight, offsets(rocm, [40, 0, 0]), **scales)
    assert refused.value.diagnostic.code == "E414"
    assert not rocm.stub.launches
