"""Each invariant that is built has a check, kernels on both sides of it, a mutation and a page with a real report."""

from __future__ import annotations

from collections import Counter

import pytest

from argus.core.invariants import INVARIANTS
from argus.core.proof.applicability import CHECKED_INVARIANTS
from benchmarks.invariants import PUBLISHED, Coverage, coverage, kernel_mutations, mutations, table
from tests.verifier import (
    test_checks_of_barriers,
    test_checks_of_claims,
    test_checks_of_memory,
    test_checks_of_roles,
    test_checks_of_values,
)
from tests.verifier.test_programs import CASES as PROGRAM_CASES

CASES = (
    *test_checks_of_barriers.CASES,
    *test_checks_of_claims.CASES,
    *test_checks_of_memory.CASES,
    *test_checks_of_roles.CASES,
    *test_checks_of_values.CASES,
    *test_checks_of_values.BY_FORMULA,
)
MADE = (*test_checks_of_memory.MADE, *test_checks_of_roles.MADE)


@pytest.fixture(scope="module")
def rows() -> tuple[Coverage, ...]:
    return coverage(every=False)


@pytest.mark.nightly
def test_implemented_invariants_are_covered(rows: tuple[Coverage, ...]) -> None:
    assert {row.invariant.id: row.lacks for row in rows if row.built and row.lacks} == {}


def test_every_invariant_is_implemented() -> None:
    assert {each.id for each in INVARIANTS} <= CHECKED_INVARIANTS


@pytest.mark.nightly
def test_an_invariant_without_a_check_is_not_covered(rows: tuple[Coverage, ...]) -> None:
    assert all("a check" in row.lacks for row in rows if not row.built)


def test_mutations_are_those_of_the_test() -> None:
    assert kernel_mutations() == Counter(code for _, code, _ in (*CASES, *MADE))
    of_programs = mutations() - kernel_mutations()
    assert sum(of_programs.values()) == len(PROGRAM_CASES)


@pytest.mark.nightly
def test_the_table_ends_in_the_count(rows: tuple[Coverage, ...]) -> None:
    lines = list(table(rows))
    covered = [row for row in rows if not row.lacks]
    published = [row for row in covered if int(row.invariant.id[1:]) <= PUBLISHED]
    assert len(lines) == len(INVARIANTS) + 3
    assert lines[-2].startswith(f"invariants covered: {len(published)} of 36;")
