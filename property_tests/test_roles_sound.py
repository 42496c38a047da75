"""Property: a proved kernel with roles does not fail, and every reported failure is real.

As `test_sound`, for kernels with roles: edits change phases, counts, bytes, slots, fences and barriers. If the verifier
proves one, no priority of its roles and no random order of its steps violates anything, and its outputs are those of
C = A B^T.
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
from property_tests.judging import judge
from property_tests.programs import products
from property_tests.role_edits import mutate_roles
from property_tests.role_programs import ROLES, SCHEDULES

FEW = evolve(Budget.about(1.0), seconds=3.0)
"""A query ends soon, too, if the solver does not count its steps."""


@pytest.mark.share(12, among="verdicts on edited kernels")
@settings(max_examples=examples(30))
@given(name=st.sampled_from(sorted(ROLES)), seed=st.integers(0, 1 << 32), edits=st.integers(1, 3))
def test_verdicts_on_edited_kernels_of_roles(name: str, seed: int, edits: int) -> None:
    mutant = mutate_roles(ROLES[name], Random(seed), edits)  # noqa: S311 reason: an example, not a secret
    assume(mutant is not None)
    assert mutant is not None
    assume(not check(mutant.kernel))
    report = verify(mutant.kernel, solver="z3" if seed % 2 else "cvc5", budget=FEW)
    judge(mutant, report, product=name in SCHEDULES or name in products())
