"""`argus.matmul` of f32: the precision is torch's, schedules by shape and layout, results as exact as sums in f32."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Reason: torch types its own methods in part.

from __future__ import annotations

from collections.abc import Generator

import pytest
import torch

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.config_names import config_of
from argus.kernels.schedules.parts import Parts
from argus.kernels.schedules.parts_at_once import AtOnce
from argus.ops.choice_f32 import candidates, instance, precision_of


@pytest.fixture(autouse=True)
def precision() -> Generator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def error(found: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    exact = a.double() @ b.double()
    return float((found.double() - exact).norm() / exact.norm())


LAYOUTS = ["nn", "nt", "tn", "tt"]


@pytest.mark.share(20, among="f32 on tensors")
@pytest.mark.parametrize(("config", "times"), [("tiles_128_any", 1.0), ("fma", 2.0), (None, 2.0)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_of_any_rows_are_read_in_place(layout: str, config: str | None, times: float) -> None:
    a, b = torch.randn(19, 35), torch.randn(35, 21)
    a = a.T.contiguous().T if layout[0] == "t" else a
    b = b.T.contiguous().T if layout[1] == "t" else b
    assert error(argus.matmul(a, b, config=config), a, b) <= times * error(a @ b, a, b)


@pytest.mark.share(20, among="f32 on tensors")
@pytest.mark.parametrize("shapes", [((2, 9, 20), (2, 20, 7)), ((2, 9, 20), (20, 7)), ((9, 20), (2, 20, 7))], ids=str)
def test_batches(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (torch.randn(each) for each in shapes)
    found = argus.matmul(a, b)
    assert found.shape == (a @ b).shape
    assert error(found, a, b) <= 2 * error(a @ b, a, b)


@pytest.mark.share(20, among="f32 on tensors")
@pytest.mark.parametrize("shapes", [((20, 301), (301, 1)), ((1, 44), (44, 6))], ids=str)
def test_few_rows_and_columns(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = torch.randn(shapes[0]), torch.randn(shapes[1][::-1]).T
    assert error(argus.matmul(a, b), a, b) <= 1e-6


@pytest.mark.share(20, among="f32 on tensors")
@pytest.mark.parametrize(
    ("word", "least", "most"), [("highest", 0, 3e-7), ("high", 1e-6, 2e-5), ("medium", 1e-3, 1e-2)]
)
def test_the_precision_is_that_of_torch(word: str, least: float, most: float) -> None:
    torch.set_float32_matmul_precision(word)
    a, b = torch.randn(2, 8, 64), torch.randn(2, 64, 8)
    assert precision_of(a.dtype) == word
    assert least <= error(argus.matmul(a, b), a, b) <= most


def test_other_types_have_no_precision() -> None:
    assert precision_of(torch.bfloat16) == ""


def chosen(family: str, *sizes: int, precision: str = "highest", a: bool = False, b: bool = False) -> str:
    found = candidates(family, sizes, a_transposed=a, b_transposed=b, device="", precision=precision)
    assert all(instance(family, each) is not None for each in found)
    assert len(found) == (2 if found[0].startswith("inring") else 1)
    return found[0]


@pytest.mark.parametrize(("word", "products"), [("highest", 6), ("high", 3), ("medium", 1)])
def test_schedules_have_the_products_of_the_precision(word: str, products: int) -> None:
    found = config_of(chosen("gemm_nn_f32", 4096, 4096, 4096, precision=word, b=True), (Parts,))
    assert (found.products, found.wide, found.chunk) == (products, True, 0)


def test_rows_that_are_no_multiples_of_16_bytes_are_loaded_one_by_one() -> None:
    assert not config_of(chosen("gemm_nn_f32", 8205, 5921, 2949, b=True), (Parts,)).wide
    assert config_of(chosen("gemm_tn_f32", 8204, 5920, 2949, a=True, b=True), (Parts,)).wide


def test_tiles_of_few_rows_and_a_large_matrix_are_split_where_they_are_multiplied() -> None:
    assert chosen("gemm_nt_f32", 128, 16384, 16384) == "inring"
    assert chosen("gemm_nt_f32", 128, 16384, 16384, precision="high") == "inring_products3"
    assert chosen("gemm_nt_f32", 1024, 16384, 16384).startswith("parts")
    assert chosen("gemm_tt_f32", 128, 16384, 16384, a=True).startswith("parts")  # rows of A are not contiguous
    assert chosen("gemm_nt_f32", 128, 16384, 16383).startswith("parts")  # no multiple of 16 bytes


def test_long_sums_of_few_tiles_are_divided() -> None:
    assert config_of(chosen("gemm_nn_f32", 256, 256, 524288, b=True), (AtOnce,)).chunk > 0
    assert config_of(chosen("bmm_nn_f32", 2, 256, 256, 524288, b=True), (AtOnce,)).chunk == 0


def test_few_rows_are_for_plain_fmas() -> None:
    assert chosen("gemm_nt_f32", 2048, 1, 1 << 20) == "few_columns_1_block_a_row_wide"
    assert chosen("gemm_nt_f32", 1, 301, 301) == "few_rows_1_warp_a_short_row"
    assert chosen("gemm_nt_f32", 2, 4096, 4096) == "few_rows_2_block_a_row_wide"
    assert chosen("gemm_nt_f32", 4, 4096, 4096) == "few_rows_4_several_steps2"
    assert chosen("gemm_nt_f32", 4096, 16, 4096) == "few_columns_16_several_rows2"
    assert chosen("gemm_nt_f32", 4, 4096, 4095) == "few_rows_4_block_a_row"
    assert chosen("gemm_nt_f32", 17, 4096, 4096).startswith("atonce")


def test_sums_that_sgemm_makes_of_short_chains_are_compensated() -> None:
    for n, made in ((512, AtOnce), (768, AtOnce), (2048, Parts)):
        config = config_of(chosen("gemm_nn_f32", n, n, n, b=True), (made,))
        assert config.compensated == (n * n < 1 << 20)
    assert config_of(chosen("bmm_nn_f32", 2, 256, 256, 1024, b=True), (AtOnce,)).compensated
    assert "compensated" not in chosen("bmm_nn_f32", 32, 512, 512, 512, b=True)


def test_products_of_few_rows_with_a_batch_are_split_where_they_are_multiplied() -> None:
    """As a convolution of one tap is: launches that split the batch would move each element four times."""
    assert chosen("bmm_nn_shared_f32", 16, 128, 1 << 20, 64, b=True) == "inring"
    assert chosen("bmm_nn_f32", 16, 128, 1 << 20, 64, b=True) == "inring"
    assert not chosen("bmm_nn_shared_f32", 16, 128, (1 << 20) + 2, 64, b=True).startswith("inring")


def test_small_products_are_chunks_of_four_stages_or_fmas_of_short_chains() -> None:
    assert chosen("gemm_nn_f32", 256, 256, 256, b=True) == "atonce_bk16_chunk64"
    assert chosen("gemm_nn_f32", 256, 256, 64, b=True).startswith("fma")
    assert chosen("gemm_nn_f32", 255, 255, 64, b=True).startswith("fma")
    assert chosen("gemm_nn_f32", 256, 256, 256, b=True, precision="high").startswith("fma")


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ArgusError, match="f32"):
        argus.matmul(torch.randn(8, 8), torch.randn(8, 8), config="columns_224")
    assert instance("bmm_nn_f32", "parts_chunk1024") is None
