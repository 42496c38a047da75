"""A written kernel's own tags and assertions: checked beside the problem's claim, which they cannot weaken."""

from pathlib import Path

import pytest

from argus.core.ir import Assert, Kernel, Tag, walk
from argus.core.verdict import ProgramReport, Report
from argus.policy.llm.own_claims import OWN
from argus.search.evaluation.checked_reports import Rejected, check_written
from argus.search.problems.llm_kernels import trace_candidate
from argus.search.problems.own_claims import own_claims_alone, own_names, without_own_claims
from argus.search.problems.problem import problem_of
from argus.search.problems.traced import Traced
from argus.solvers.cache import Cache
from argus.verifier.api import verify
from tests.search.evaluation.test_gate import TEXT

PRODUCT = problem_of("gemm:512x512x512:bf16", "gfx942")
ROWS = Path(__file__).parents[2] / "corpus" / "journeys" / "rows"
STEPS = TEXT.replace("dict(m=m, k=k))", "dict(m=m, k=k, step=k // 8))", 1)


def solver(each: Traced) -> Report | ProgramReport:
    assert isinstance(each, Kernel)
    return verify(each, cache=Cache())


def with_claim(claim: str) -> str:
    return STEPS.replace("        mma(mm", f"        {claim}\n        mma(mm", 1)


def checked(text: str) -> tuple[str, ...]:
    kernel = trace_candidate(text, PRODUCT)
    return check_written(PRODUCT, kernel, solver)


def test_own_names_are_taken_out_of_the_problems_kernel() -> None:
    kernel = trace_candidate(with_claim("assert_relation(a, lambda x: eq(x.step, k))"), PRODUCT)
    own = own_names(kernel)
    plain, alone = without_own_claims(kernel, own), own_claims_alone(kernel)
    names = [sorted(dict(each.names)) for each in walk(plain.body) if isinstance(each, Tag)]

    assert own == {"step"}
    assert names == [["k", "m"], ["k", "n"]]
    assert [sum(isinstance(each, Assert) for each in walk(found.body)) for found in (kernel, plain, alone)] == [3, 2, 1]
    assert without_own_claims(plain, own_names(plain)) is plain


@pytest.mark.share(8, among="own claims of written kernels")
@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ("assert_relation(a, lambda x: eq(x.step, k))", "own claims about step are proved"),
        ("assert_relation(a, lambda x: eq(x.step, k + 1))", "a.step == k + 1` does not hold"),
        ("assert_relation(a, lambda x: x.step < 1)", "does not hold"),
    ],
)
def test_own_claims_are_proved_or_refuted_by_a_counterexample(claim: str, found: str) -> None:
    try:
        said, counterexample = " ".join(checked(with_claim(claim))), None
    except Rejected as refused:
        said, counterexample = f"{refused.outcome}: {refused.why}", refused.counterexample

    assert found in said
    assert (counterexample is not None) == said.startswith(f"refuted: {OWN}")


@pytest.mark.share(8, among="own claims of written kernels")
@pytest.mark.parametrize(
    "edit",
    [
        ("dict(n=n, k=k))", "dict(n=n, k=k + 1))"),  # the product of other elements, called the same
        ("dict(n=n, k=k))", "dict(n=n, k=k % 8))"),
        ("assert_covers(acc.tag.k, 0, K)\n", "assert_covers(acc.tag.k, 0, K - K % 2)\n"),
        ("    assert_written_once(C, lambda m, n: dict(m=m, n=n))\n", ""),
    ],
)
def test_the_problems_claim_cannot_be_weakened(edit: tuple[str, str]) -> None:
    text = with_claim("assert_relation(a, lambda x: eq(x.step, k))")
    assert text.count(edit[0]) == 1
    with pytest.raises(Rejected) as refused:
        checked(text.replace(*edit))

    assert refused.value.outcome in {"unknown", "refuted"}
    assert not refused.value.why.startswith(OWN)


@pytest.mark.share(8, among="own claims of written kernels")
def test_a_kernel_of_a_files_problem_proves_what_the_files_kernel_proves() -> None:
    """Without this check, a kernel that claims less passes by the small sizes that the interpreter runs."""
    problem = problem_of(str(ROWS / "start.py"), "sm_90a", "R=64,N=64")
    text = (ROWS / "2_held.py").read_text()
    claim = text[text.index("    assert_equals(") :]
    less = "    tag(X, lambda r, n: dict(r=r, n=n))\n    assert_written_once(Y, lambda r, n: dict(r=r, n=n))\n"
    weaker = text.replace(claim, less).replace("assert_equals", "assert_written_once, tag", 1)
    tagged = text.replace("    R, N = X.shape\n", "    R, N = X.shape\n    tag(X, lambda r, n: dict(half=n // 2))\n")

    assert check_written(problem, trace_candidate(text, problem), solver) == ()
    with pytest.raises(Rejected, match="the problem's claim is not proved: expected assert_equals"):
        check_written(problem, trace_candidate(weaker, problem), solver)
    noted = check_written(problem, trace_candidate(tagged.replace("total,", "total, tag,", 1), problem), solver)
    assert noted in {("own claims about half are proved",), ("own claims about half are not decided",)}


@pytest.mark.nightly
def test_a_kernel_of_a_files_problem_makes_its_claims_about_sums() -> None:
    attention = ROWS.parent / "attention"
    problem = problem_of(str(attention / "start.py"), "sm_90a", "S=64,T=128")
    text = (attention / "1_ring.py").read_text()
    less = text.replace("loop(T // KEYS)", "loop(T // KEYS - 1)").replace("tag.t, 0, T)", "tag.t, 0, T - KEYS)")

    assert check_written(problem, trace_candidate(text, problem), solver) == ()
    with pytest.raises(Rejected, match="the problem's claim is not made: expected assert_covers t 0 T"):
        check_written(problem, trace_candidate(less, problem), solver)
