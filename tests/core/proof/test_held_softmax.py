"""Softmax and attention kernels of the corpus hold the textbook formula, and their wrong twins do not."""

from __future__ import annotations

import pytest

from argus.core.check import check
from argus.testing.mutation import mutated
from tests.core.proof.held_formulas import Expected
from tests.core.proof.softmax_formulas import FORMULAS
from tests.core.proof.test_held import WRONG, agrees, analysed, traced


@pytest.mark.share(32)
@pytest.mark.parametrize("expected", FORMULAS, ids=lambda each: f"{each.kernel} {each.output}")
def test_an_output_is_the_textbook_formula(expected: Expected) -> None:
    assert agrees(analysed(traced(expected.kernel)), expected)


SAME = {
    "row_softmax": {"constant_element: 0.0 for `max_34`"},
    "attention_product_guarded": {"constant_element: 1.0 for `max_40`"},
}
"""Twins that compute the same: a softmax does not depend on the reference of its weights, as far as reals go."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", SAME)
def test_a_wrong_twin_is_not_the_textbook_formula(name: str) -> None:
    (expected,) = (each for each in FORMULAS if each.kernel == name)
    twins = [each for each in mutated(traced(name), WRONG) if not check(each.kernel)]
    some = twins[:: max(1, len(twins) // 20)]

    assert len(some) >= 12
    equal = [each for each in some if agrees(analysed(each.kernel), expected)]
    assert {f"{each.operator}: {each.what}" for each in equal} <= SAME[name]
