"""Suggested claims: those found for a kernel without claims; no false claim is proposed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.ir import Kernel, Tag
from argus.kernels.gemm import gemm
from argus.verifier.suggest import Suggestions, suggest_invariants
from argus.verifier.suggest.pool import candidates
from argus.verifier.suggest.program import mutants, rewritten, without_claims
from property_tests.programs import CORPUS, templates

COVERS = "assert_covers(acc.tag.k, 0, K)"
WRITTEN = "assert_written_once(C, lambda m, n: dict(m=m, n=n))"


def stripped(kernel: Kernel, *, tags: bool = False) -> Kernel:
    """The kernel without claims, and without tags unless they are wanted."""
    bare = without_claims(kernel)
    return bare if tags else rewritten(bare, lambda stmt: () if isinstance(stmt, Tag) else (stmt,))


def of_corpus(name: str) -> Kernel:
    (path,) = CORPUS.glob(f"*/{name}.py")
    (template,) = templates(path)
    return template.trace()


@pytest.fixture(scope="module")
def of_gemm() -> Suggestions:
    return suggest_invariants(stripped(gemm.trace("cdna3")), solver="z3")


@pytest.mark.share(12, among="suggestions")
def test_tags_and_claims_are_found_for_a_bare_gemm(of_gemm: Suggestions) -> None:
    codes = [each.code for each in of_gemm.found]

    assert of_gemm.verdict == "proved", of_gemm.reason
    assert codes[:2] == ["tag(A, lambda m, k: dict(m=m, k=k))", "tag(B, lambda n, k: dict(n=n, k=k))"]
    assert {COVERS, WRITTEN} <= set(codes)


@pytest.mark.share(4)
def test_a_suggestion_says_where_it_goes_and_what_it_excludes(of_gemm: Suggestions) -> None:
    covers = next(each for each in of_gemm.found if each.code == COVERS)

    assert covers.at.frame is not None
    assert covers.at.frame.file.endswith("cdna3.py")
    assert 0 < covers.excludes <= of_gemm.mistakes
    assert covers.compared > 0
    assert [each.excludes for each in of_gemm.found if each.kind != "tag"] == sorted(
        (each.excludes for each in of_gemm.found if each.kind != "tag"), reverse=True
    )


def test_implied_claims_are_listed_separately(of_gemm: Suggestions) -> None:
    implied = {each.code for each in of_gemm.implied}

    assert "assert_order(acc.tag.k)" in implied
    assert "assert_relation(earlier(a), a, lambda was, now: eq(now.k, was.k + 32))" in implied
    assert not implied & {each.code for each in of_gemm.found}


@pytest.mark.nightly
def test_no_false_claim_is_proposed_for_a_wrong_kernel() -> None:
    found = suggest_invariants(stripped(of_corpus("k_counted_twice"), tags=True), solver="z3")
    proposed = {each.code for each in (*found.found, *found.implied, *found.open)}

    assert found.verdict != "proved"
    assert found.reason
    assert COVERS not in proposed
    assert WRITTEN in proposed


@pytest.mark.share(12, among="suggestions")
def test_candidates_exclude_existing_claims() -> None:
    kernel = of_corpus("single_buffer")
    codes = [each.code for each in candidates(without_claims(kernel))]
    found = suggest_invariants(kernel, solver="z3")

    assert COVERS in codes
    assert not any(code.startswith("tag(") for code in codes)
    assert {COVERS, WRITTEN}.isdisjoint(each.code for each in (*found.found, *found.implied, *found.open))


def test_a_mutant_changes_one_statement() -> None:
    kernel = stripped(of_corpus("single_buffer"), tags=True)

    assert sum(1 for _ in mutants(kernel)) >= 10
    assert all(wrong is not kernel for wrong in mutants(kernel))


@pytest.mark.share(12, among="suggestions")
def test_the_command_prints_lines_to_paste(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = (CORPUS / "proved" / "single_buffer.py").read_text(encoding="utf-8")
    bare = tmp_path / "bare.py"
    bare.write_text(re.sub(r"^ +assert_.*\n", "", source, flags=re.MULTILINE), encoding="utf-8")

    assert main(["suggest", str(bare), "--solver", "z3", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    (kernel,) = document["kernels"]
    assert document["schema"] == "argus.suggestions/1"
    assert COVERS in [each["code"] for each in kernel["found"]]
