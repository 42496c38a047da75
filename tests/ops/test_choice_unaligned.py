"""Rows that are no multiples of 16 bytes: which products go by way of copies, and how these are asked for."""

from __future__ import annotations

import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.cost_sm_90a import stores_elements
from argus.kernels.padded import FAMILIES
from argus.ops.choice import candidates
from argus.ops.choice_unaligned import COPIED, element_by_element, select_narrow, select_unaligned
from argus.ops.matmul import candidate
from tests.ops.fake_torch import Multiplying, batch, matrix

UNALIGNED = (
    (1000, 1001, 1001),
    (4095, 4095, 4095),
    (3275, 3224, 149),
    (200, 631, 6943),
    (640, 7167, 7169),
)


@pytest.mark.share(8)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", UNALIGNED, ids=str)
def test_copies_are_multiplied_by_a_configuration_of_the_family(family: str, shape: tuple[int, int, int]) -> None:
    lies = {"a_transposed": family[5] == "t", "b_transposed": family[6] == "n"}
    chosen = select_unaligned(*shape, **lies)

    first, *others = candidates(family, shape, **lies, device="")
    assert first == chosen
    assert others == [select_narrow(*shape)]
    made, module = candidate(family, first).traced()
    assert (made.name, module) == (f"gemm_padded_{first.removeprefix(COPIED)}", "argus.kernels.padded")


def test_a_product_of_any_columns_is_stored_element_by_element() -> None:
    name = select_unaligned(4096, 4099, 4097, a_transposed=False, b_transposed=False)
    assert name is not None
    assert stores_elements(FAMILIES["gemm_nt"].configs[name.removeprefix(COPIED)])


def test_small_products_and_aligned_rows_are_not_copied() -> None:
    for shape in ((3, 5, 7), (15871, 49, 23), (4096, 4099, 4096)):
        assert select_unaligned(*shape, a_transposed=False, b_transposed=False) is None
    assert select_unaligned(4097, 4096, 4096, a_transposed=False, b_transposed=False) is None
    assert select_unaligned(4097, 4096, 4096, a_transposed=True, b_transposed=False) is not None


@pytest.mark.parametrize(
    ("shape", "measured"),
    [((421, 2737, 3961), 112.5), ((7275, 3224, 49), 93.9), ((10065, 1264, 3769), 680.5), ((4095, 4095, 4095), 965.0)],
    ids=str,
)
def test_the_time_of_loads_of_elements_is_near_what_was_measured(shape: tuple[int, int, int], measured: float) -> None:
    """By one H200, in microseconds."""
    assert abs(element_by_element(*shape, 128) / measured - 1) < 0.35


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((1, 8193, 8191), "few_1_block_a_row"),
        ((4, 4099, 16385), "few_4_block_a_row"),
        ((1, 20001, 1023), "few_1_warp_a_row"),
        ((1, 50001, 513), "few_1_warp_a_short_row"),
        ((3, 4099, 16384), "few_3_block_a_row"),
        ((2, 8193, 1023), "narrow_32"),
    ],
    ids=str,
)
def test_few_rows_are_multiplied_without_copies(shape: tuple[int, int, int], name: str) -> None:
    first, *_ = candidates("gemm_nt", shape, a_transposed=False, b_transposed=False, device="")
    assert first == name
    made, _ = candidate("gemm_nt", name).traced()
    assert made.name.startswith(f"gemm_of_{shape[0]}_bf16_" if name.startswith("few") else "gemm_narrow_32")


def test_copies_of_a_batch_are_refused(fake: Multiplying) -> None:
    with pytest.raises(ArgusError) as refused:
        argus.matmul(batch((2, 8, 7)), batch((2, 7, 8)), config="padded_skinny")
    assert refused.value.diagnostic.code == "E414"
    for config in ("padded_narrow", "few_5_block_a_row", "few_x_block_a_row", "few_"):
        with pytest.raises(ArgusError, match=f"there is no schedule `{config}`"):
            argus.matmul(matrix(8, 7), matrix(7, 8), config=config)
    assert fake.launches == []
