"""What is compiled of DeepGEMM, as a peer: the tiles that it chooses, and the text that instantiates its templates."""

from __future__ import annotations

import pytest

from benchmarks.peers.deep_gemm import BF16, E4M3, Product, chosen, dense, grouped_product, source, tiles_of

SHARED = 227 * 1024
"""Bytes of shared memory that a block can have."""


@pytest.mark.parametrize(
    ("product", "tile", "along", "stages"),
    [
        (Product(E4M3, 8192, 8192, 8192), (256, 128), (1, 2), 3),
        (Product(E4M3, 2048, 2048, 2048), (256, 128), (1, 1), 3),
        (Product(E4M3, 128, 7168, 16384), (64, 112), (1, 1), 9),
        (Product(BF16, 8704, 14336, 4096, experts=8), (128, 256), (2, 1), 3),
        (Product(E4M3, 8704, 14336, 4096, experts=8), (128, 192), (2, 1), 4),
    ],
)
def test_tiles_are_those_of_the_fewest_cycles(
    product: Product, tile: tuple[int, int], along: tuple[int, int], stages: int
) -> None:
    found = chosen(product)

    assert ((found.m, found.n), found.along, found.stages) == (tile, along, stages)


@pytest.mark.parametrize("product", [*dense(E4M3), *dense(BF16), grouped_product(E4M3, (5, 0, 300), 2816, 2048)])
def test_stages_fit_shared_memory_and_one_more_would_not(product: Product) -> None:
    for tiles in tiles_of(product):
        stage = 128 * (tiles.m + tiles.n)
        assert tiles.memory <= SHARED
        assert tiles.stages == 16 or tiles.memory + stage + 4 * tiles.m > SHARED - 512


def test_rows_of_experts_are_padded() -> None:
    assert grouped_product(BF16, (1, 0, 128, 129), 64, 64).m == 128 + 0 + 128 + 256


def test_the_instance_has_the_templates_arguments_in_order() -> None:
    product = Product(E4M3, 8704, 14336, 4096, experts=8)
    wanted = (
        "sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, 14336, 4096, 8, 128, 192, 128, 128, 128, 128, 4, 128, 256, "
        "2, false, 132, GemmType::MGroupedContiguous, cutlass::bfloat16_t, epilogue::transform::EpilogueIdentity>"
    )

    assert wanted in source(product, chosen(product))
