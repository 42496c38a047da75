"""Property: a proved kernel does not fail, and every reported failure is real.

Kernels are edited at random, so that most are wrong. If the verifier proves one, the interpreter must find no violation
at any of a list of sizes, under directed and random schedules; if the edits left the claims unchanged, the outputs must
also be those of C = A B^T. The replay of a refutation is repeated here.
"""

from __future__ import annotations

from random import Random

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from argus.core.check import check
from argus.core.query import Budget
from argus.verifier.kernel import verify
from property_tests.depth import examples
from property_tests.edits import mutate
from property_tests.judging import judge
from property_tests.programs import KERNELS, WITH_ROLES, products

SOON = evolve(Budget(), seconds=3.0)
"""Within which a solver gives up that does not count its steps, as cvc5 with products of many sizes."""
ALONE = sorted(set(KERNELS).difference(WITH_ROLES))
"""The kernels without roles; kernels with roles have their own edits."""


@pytest.mark.share(12, among="verdicts on edited kernels")
@settings(max_examples=examples(30))
@given(name=st.sampled_from(ALONE), seed=st.integers(0, 1 << 32), edits=st.integers(1, 3))
def test_verdicts_on_edited_kernels(name: str, seed: int, edits: int) -> None:
    mutant = mutate(KERNELS[name], Random(seed), edits)  # noqa: S311 reason: an example, not a secret
    assume(mutant is not None)
    assert mutant is not None
    assume(not check(mutant.kernel))
    report = verify(mutant.kernel, solver="z3" if seed % 2 else "cvc5", budget=SOON)
    judge(mutant, report, product=name in products())
