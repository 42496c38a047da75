"""The kernels whose edits are judged by the product of matrices compute it, before any edit."""

from __future__ import annotations

import pytest

from property_tests.judging import check_numbers
from property_tests.programs import KERNELS, Mutant, products

PARTS = 20
"""Collecting tests traces no kernel, so that a case is a part of them."""


@pytest.mark.share(40)
@pytest.mark.parametrize("part", range(PARTS))
def test_unedited_kernels_compute_the_product(part: int) -> None:
    chosen = products()[part::PARTS]
    assert chosen
    for name in chosen:
        check_numbers(Mutant(KERNELS[name], (), claims=True))
