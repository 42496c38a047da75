"""The kernels whose edits are judged by the product of matrices compute it, before any edit."""

from __future__ import annotations

import pytest

from property_tests.judging import check_numbers
from property_tests.programs import KERNELS, Mutant, products


@pytest.mark.share(20)
@pytest.mark.parametrize("name", products())
def test_an_unedited_kernel_computes_the_product(name: str) -> None:
    check_numbers(Mutant(KERNELS[name], (), claims=True))
