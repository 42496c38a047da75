"""Operators on tensors of an AMD GPU: each finds its kernel, proves it, and executes its machine code on a stand-in."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor

OPERATORS: Any = argus
FNUZ = "torch.float8_e4m3fnuz"


def rounded(
    product: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return product.astype(bfloat16).astype(np.float32)


def check_product(found: Tensor, a: Tensor, b: Tensor) -> None:
    """Exactly: the operands are small whole numbers."""
    np.testing.assert_array_equal(found.array.astype(np.float32), rounded(a.wide @ b.wide))


@pytest.mark.share(3)
def test_a_product_is_of_the_kernels_for_the_device(rocm: RocmTorch) -> None:
    a, b = rocm.whole(40, 24), rocm.whole(20, 24, seed=1).mT
    check_product(argus.matmul(a, b), a, b)
    other = rocm.whole(40, 24, seed=2)
    check_product(argus.matmul(other, b), other, b)  # by the launch that is ready
    assert [name for name, _ in rocm.stub.launches] == ["gemm_cdna3_"] * 2
    assert not rocm.stub.findings


@pytest.mark.share(3)
def test_products_of_any_size_and_empty_ones(rocm: RocmTorch) -> None:
    for m, n, k in ((1, 1, 8), (33, 7, 16), (130, 3, 72)):
        a, b = rocm.whole(m, k), rocm.whole(n, k, seed=1).mT
        check_product(argus.matmul(a, b), a, b)
    assert argus.matmul(rocm.whole(0, 8), rocm.whole(8, 3)).shape == (0, 3)
    assert len(rocm.stub.launches) == 3
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
def test_rows_with_gaps_are_copied(rocm: RocmTorch) -> None:
    """Rows with gaps, a batch of `a` as one matrix, columns in no whole vectors: kernels for gfx942 read dense rows."""
    b = rocm.whole(24, 16, seed=1)
    wide = rocm.whole(8, 48)
    gaps = Tensor(wide.array[:, :24], wide.dtype, placed=rocm.placed)
    check_product(argus.matmul(gaps, b), gaps, b)
    batch = rocm.whole(2, 8, 24, seed=2)
    check_product(argus.matmul(batch, b), batch, b)
    odd = rocm.whole(24, 9, seed=3).mT
    check_product(argus.matmul(odd, b), odd, b)
    assert {name for name, _ in rocm.stub.launches} == {"gemm_nn_interleaved_128_"}
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
def test_columns_and_batches_have_kernels_of_their_own(rocm: RocmTorch) -> None:
    a, b = rocm.whole(24, 8), rocm.whole(24, 16, seed=1)
    check_product(argus.matmul(a.mT, b), a.mT, b)
    many, others = rocm.whole(2, 8, 24), rocm.whole(2, 24, 9, seed=1)
    check_product(argus.matmul(many, others), many, others)
    half, other = (rocm.whole(16, 16, seed=seed, dtype="torch.float16") for seed in (2, 3))
    found = argus.matmul(half, other.mT)
    np.testing.assert_array_equal(found.array.astype(np.float32), (half.wide @ other.wide.T).astype(np.float16))
    names = ["gemm_tn_interleaved_128_", "bmm_nt_interleaved_any_", "gemm_nt_f16_interleaved_128_"]
    assert [name for name, _ in rocm.stub.launches] == names
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
def test_rows_of_any_length_are_loaded_in_smaller_vectors(rocm: RocmTorch) -> None:
    for k, config in ((18, "pairs"), (13, "narrow")):
        a, b = rocm.whole(9, k), rocm.whole(20, k, seed=1).mT
        check_product(argus.matmul(a, b), a, b)
        assert rocm.stub.launches[-1][0] == f"gemm_interleaved_{config}_"
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize(
    ("dtype", "config", "layouts"),
    [
        ("torch.bfloat16", "runs_2_of_3", "nt"),
        ("torch.float16", "parts_2", "nt"),
        ("torch.bfloat16", "parts_2", "nn"),
        ("torch.float16", "runs_2_of_3", "tt"),
        ("torch.bfloat16", "cdna3stream_chunks3_align2_nowide", "tn"),
    ],
)
def test_k_in_parts_is_two_launches_with_a_workspace(rocm: RocmTorch, dtype: str, config: str, layouts: str) -> None:
    (m, n, k), turned = (136, 16, 200), (layouts[0] == "t", layouts[1] == "n")
    a = rocm.whole(k, m, dtype=dtype).mT if turned[0] else rocm.whole(m, k, dtype=dtype)
    b = rocm.whole(k, n, seed=1, dtype=dtype) if turned[1] else rocm.whole(n, k, seed=1, dtype=dtype).mT
    found = argus.matmul(a, b, config=config)
    np.testing.assert_array_equal(found.array, (a.wide @ b.wide).astype(found.array.dtype))
    family = f"gemm_{layouts}" + ("_f16" if dtype == "torch.float16" else "")
    assert [name for name, _ in rocm.stub.launches] == [f"{family}_parts_", f"{family}_sum_"]
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_few_products_of_a_deep_k_are_chosen_to_be_in_parts(rocm: RocmTorch, shared: bool) -> None:
    m, n, k = 9, 24, 4224
    a, b = rocm.whole(m, k) if shared else rocm.whole(2, m, k), rocm.whole(2, k, n, seed=1)
    check_product(argus.matmul(a, b), a, b)
    family = "bmm_nn_shared" if shared else "bmm_nn"
    assert [name for name, _ in rocm.stub.launches] == [f"{family}_parts_", f"{family}_sum_"]
    assert not rocm.stub.findings


def test_a_product_without_a_kernel_for_the_device_is_refused(rocm: RocmTorch) -> None:
    a, b = rocm.whole(8, 16), rocm.whole(16, 8)
    half = rocm.whole(16, 16, dtype="torch.float16")
    calls = {
        "for operands such as those of `bmm_nn`": lambda: argus.matmul(
            rocm.whole(2, 8, 16), rocm.whole(2, 16, 8), config="cdna3"
        ),
        "for operands such as those of `gemm_nn_f16`": lambda: argus.matmul(half, half, config="cdna3"),
        "for operands such as those of `gemm_tn`": lambda: argus.matmul(b.mT, b, config="cdna3"),
    }
    for words, call in calls.items():
        with pytest.raises(ArgusError, match=words) as refused:
            call()
        assert refused.value.diagnostic.code == "E414"
    with pytest.raises(ArgusError, match="there is no schedule `cooperative`") as refused:
        argus.matmul(a, b, config="cooperative")
    assert refused.value.diagnostic.help.startswith("choose one of cdna3, cdna3_pingpong, interleaved")
    assert not rocm.stub.launches


def scaled(rocm: RocmTorch, m: int, n: int, k: int) -> None:
    """Exactly: scales are powers of two."""
    a, b = rocm.whole(m, k, dtype=FNUZ), rocm.whole(n, k, seed=1, dtype=FNUZ)
    of_a, of_b = (rocm.tensor(np.full(1, each), "torch.float32") for each in (0.5, 4.0))
    found = OPERATORS.scaled_matmul(a, b.mT, of_a, of_b)
    np.testing.assert_array_equal(found.array.astype(np.float32), rounded(2 * a.wide @ b.wide.T))


@pytest.mark.share(80, among="operators on the processor")
def test_products_of_scaled_8_bit_numbers_of_a_deep_k_are_in_parts(rocm: RocmTorch) -> None:
    scaled(rocm, 9, 23, 8256)
    assert [name for name, _ in rocm.stub.launches] == ["fnuz_parts_", "fnuz_sum_"]
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
def test_products_of_scaled_8_bit_numbers(rocm: RocmTorch) -> None:
    scaled(rocm, 40, 23, 48)
    scaled(rocm, 40, 23, 48)  # by the launch that is ready
    scaled(rocm, 3, 7, 144)
    assert [name for name, _ in rocm.stub.launches] == ["gemm_fp8_fnuz_interleaved_any_"] * 3
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize(("m", "n", "k", "config"), [(40, 23, 144, "any"), (33, 136, 272, "128")])
def test_products_with_scales_of_blocks(rocm: RocmTorch, m: int, n: int, k: int, config: str) -> None:
    """Exactly: scales are powers of two."""
    random, blocks = np.random.default_rng(0), -(-k // 128)
    a, b = (rocm.whole(rows, k, seed=seed, dtype=FNUZ) for seed, rows in enumerate((m, n)))
    shapes = (m, blocks), (blocks, -(-n // 128))
    of_a, of_b = (rocm.tensor(2.0 ** random.integers(-1, 2, shape), "torch.float32") for shape in shapes)
    found = OPERATORS.scaled_matmul(a, b.mT, of_a, of_b)

    of_rows, of_columns = (np.repeat(each, 128, 1)[:, :k] for each in (of_a.wide, of_b.wide.T))
    wanted = (a.wide * of_rows) @ (b.wide * np.repeat(of_columns, 128, 0)[:n]).T
    np.testing.assert_array_equal(found.array.astype(np.float32), rounded(wanted))
    assert [name for name, _ in rocm.stub.launches] == [f"gemm_fp8_fnuz_blocks_interleaved_{config}_"]
    assert not rocm.stub.findings


def integers(rocm: RocmTorch, m: int, n: int, k: int) -> tuple[Any, ...]:
    """Operands of `scaled_matmul` of every number of int8, and a power of two for each row and each column."""
    random = np.random.default_rng(0)
    a, b = (rocm.tensor(random.integers(-128, 128, (rows, k)), "torch.int8") for rows in (m, n))
    of_a, of_b = (rocm.tensor(2.0 ** random.integers(-3, 4, shape), "torch.float32") for shape in ((m, 1), (1, n)))
    return a, b.mT, of_a, of_b


@pytest.mark.nightly
def test_products_of_integers_of_a_deep_k_are_in_parts(rocm: RocmTorch) -> None:
    a, b, of_a, of_b = operands = integers(rocm, 9, 24, 8256)
    found = OPERATORS.scaled_matmul(*operands)
    wanted = (of_a.wide * of_b.wide * (a.wide @ b.wide)).astype(np.float32)
    np.testing.assert_array_equal(found.array.astype(np.float32), rounded(wanted))
    assert [name for name, _ in rocm.stub.launches] == ["i8_parts_", "i8_sum_"]
    assert not rocm.stub.findings


@pytest.mark.share(80, among="operators on the processor")
@pytest.mark.parametrize(("m", "n", "k"), [(40, 23, 48), (1, 1, 16)])
def test_products_of_integers_with_scales_of_rows_and_columns(rocm: RocmTorch, m: int, n: int, k: int) -> None:
    a, b, of_a, of_b = operands = integers(rocm, m, n, k)
    for _ in range(2):  # the second by the launch that is ready
        found = OPERATORS.scaled_matmul(*operands)
        np.testing.assert_array_equal(
            found.array.astype(np.float32), rounded(of_a.wide * of_b.wide * (a.wide @ b.wide))
        )
    assert [name for name, _ in rocm.stub.launches] == ["gemm_i8_scaled_interleaved_any_"] * 2
    assert not rocm.stub.findings


def test_integers_of_too_long_rows_or_with_other_scales_are_refused(rocm: RocmTorch) -> None:
    a, b, of_a, of_b = integers(rocm, 1, 3, 1 << 17)
    with pytest.raises(ArgusError, match=r"sums of fewer than 2\^17 products") as refused:
        OPERATORS.scaled_matmul(a, b, of_a, of_b)
    assert refused.value.diagnostic.code == "E414"

    a, b, of_a, of_b = integers(rocm, 40, 23, 48)
    for wrong in ((of_b, of_a), (of_a, of_a), (rocm.tensor(np.ones(1), "torch.float32"),) * 2):
        with pytest.raises(ArgusError, match=r"expected \(40, 1\) and \(1, 23\)") as refused:
            OPERATORS.scaled_matmul(a, b, *wrong)
        assert refused.value.diagnostic.code == "E401"
    fnuz = rocm.whole(23, 48, dtype=FNUZ)
    with pytest.raises(ArgusError, match=r"and `b` of torch\.float8_e4m3fnuz") as refused:
        OPERATORS.scaled_matmul(a, fnuz.mT, of_a, of_b)
    assert refused.value.diagnostic.code == "E401"
    assert not rocm.stub.launches


def test_a_scaled_product_of_rows_in_no_whole_vectors_is_refused(rocm: RocmTorch) -> None:
    with pytest.raises(ArgusError, match="K must be a multiple of 16") as refused:
        scaled(rocm, 16, 16, 24)
    assert refused.value.diagnostic.code == "E414"
    assert not rocm.stub.launches


def test_another_amd_gpu_is_refused(rocm: RocmTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", RocmTorch(rocm.stub, "gfx90a:sramecc+:xnack-").module())
    a, b = rocm.whole(8, 16), rocm.whole(16, 8)
    with pytest.raises(ArgusError, match=r"\(gfx90a\), the kernel is for gfx942") as refused:
        argus.matmul(a, b)
    assert refused.value.diagnostic.code == "E407"
    assert not rocm.stub.launches
