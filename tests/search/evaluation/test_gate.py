from itertools import count
from pathlib import Path

import pytest
from attrs import evolve, frozen

from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Assert, Covers, Kernel
from argus.emit.artifact import Artifact
from argus.search.bench_harness.verdict import Caught, Passed, Verdict
from argus.search.evaluation.gate import Tools, evaluate
from argus.search.evaluation.judgement import STAGES
from argus.search.problems.problem import Problem, problem_of
from argus.solvers.cache import Cache
from argus.verifier.api import build, verify
from argus.verifier.reference import Contraction, claimed_contraction

PROBLEM = problem_of("gemm:4096x4096x4096:bf16", "gfx942")
HOPPER = problem_of("gemm:4096x4096x4096:bf16", "sm_90a")


@frozen
class Card:
    """A fake GPU with given results."""

    wrong: str = ""
    microseconds: float = 200.0
    fault: str = ""
    late: str = ""

    def disagreement(self, problem: Problem, kernel: Kernel, artifact: Artifact) -> Caught | None:
        del problem, kernel, artifact
        if self.fault:
            raise ArgusError(Diagnostic(self.fault, "error", "the kernel did not finish"))
        return Caught("numbers", self.wrong) if self.wrong else None

    def time(self, problem: Problem, kernel: Kernel, artifact: Artifact) -> Verdict:
        del problem, kernel, artifact
        return Caught("clocks", self.late) if self.late else Passed(self.microseconds)


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(
        lambda kernel: verify(kernel, cache=Cache()),
        lambda kernel, folder: build(kernel, directory=folder),
        predict,
        folder=tmp_path / "code",
    )


@pytest.mark.share(2)
def test_a_proved_design_passes_with_a_predicted_time(tools: Tools) -> None:
    ticks = count()
    found = evaluate(PROBLEM, "cdna3", tools, clock=lambda: float(next(ticks)))

    assert (found.outcome, found.stage, found.why, found.reward) == ("timed", "timing", "", "predicted")
    assert found.microseconds is not None
    assert found.microseconds > PROBLEM.bounds.least
    assert list(found.seconds) == [each for each in STAGES if each in found.seconds]
    assert set(found.seconds.values()) == {1.0}
    assert found.resources["lds_bytes"] == 32768.0
    assert Path(found.place).is_file()


def test_designs_over_limits_are_rejected_before_compilation(tools: Tools) -> None:
    found = evaluate(HOPPER, "staged_bm128_bn256", tools)

    assert (found.outcome, found.stage) == ("over limits", "invariants")
    assert found.why.startswith("I22")
    assert not found.compiled
    assert found.microseconds is None


def test_an_unknown_design_is_ill_formed(tools: Tools) -> None:
    found = evaluate(PROBLEM, "cooperative", tools)

    assert (found.outcome, found.stage) == ("ill-formed", "parse")
    assert "E903" in found.why


@pytest.mark.share(52, among="search: evaluation: gate")
@pytest.mark.parametrize(
    ("card", "outcome", "stage", "why"),
    [
        (Card(), "timed", "timing", ""),
        (Card(wrong="rows differ"), "wrong", "device", "rows differ"),
        (Card(microseconds=50.0), "cheat", "timing", "faster than the machine can be"),
        (Card(late="two clocks differ"), "cheat", "timing", "two clocks differ"),
        (Card(fault="E410"), "lost", "device", "E410"),
    ],
)
def test_the_gpu_result_counts(tools: Tools, card: Card, outcome: str, stage: str, why: str) -> None:
    found = evaluate(PROBLEM, "cdna3", evolve(tools, device=card))

    assert (found.outcome, found.stage) == (outcome, stage)
    assert why in found.why
    assert found.microseconds == (200.0 if outcome == "timed" else None)


@pytest.mark.share(2)
def test_what_is_no_fault_of_a_candidate_is_raised(tools: Tools) -> None:
    with pytest.raises(ArgusError, match="E406"):
        evaluate(PROBLEM, "cdna3", evolve(tools, device=Card(fault="E406")))


TEXT = """
from argus.language import *

@kernel(target=gfx942, threads=64)
def written(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 4 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=8)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 8)):
        copy(A.tile((32, 8), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((32, 8), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((32, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
"""


@pytest.mark.share(12, among="texts for a problem")
def test_a_text_must_satisfy_the_problem(tools: Tools) -> None:
    found = evaluate(PROBLEM, "text-1", tools, TEXT)

    assert (found.outcome, found.why) == ("timed", "")


@pytest.mark.share(52, among="search: evaluation: gate")
@pytest.mark.parametrize(
    ("old", "new", "outcome", "why"),
    [
        ("B.tile((32, 8), (n, k))", "B.tile((32, 8), (n, k + 1))", "refuted", "I1"),
        ("    assert_written_once(C, lambda m, n: dict(m=m, n=n))\n", "", "unknown", "C"),
        ('A: Tensor["M K", bf16]', 'A: Tensor["L K", bf16]', "ill-formed", "E907"),
        ("def written(A", "def written(X", "ill-formed", ""),
        ("target=gfx942", "target=sm_90a", "ill-formed", ""),
        ("from argus.language import *", "from argus.language import *\nimport os\nos._exit(0)", "ill-formed", "E003"),
        (
            "from argus.language import *",
            "from argus.language import *\nimport posix\nposix._exit(0)",
            "ill-formed",
            "E94",
        ),
    ],
)
def test_a_text_of_less_than_the_problem_is_stopped(tools: Tools, old: str, new: str, outcome: str, why: str) -> None:
    assert old in TEXT
    found = evaluate(PROBLEM, "text-2", tools, TEXT.replace(old, new, 1))

    assert found.outcome == outcome
    assert why in found.why
    assert not found.compiled


def test_a_refuted_text_brings_its_counterexample(tools: Tools) -> None:
    found = evaluate(PROBLEM, "text-3", tools, TEXT.replace("(n, k))", "(n, k + 1))", 1))

    assert found.counterexample is not None
    assert found.counterexample["code"] == "I1"
    assert found.counterexample["thread"] == 0


@pytest.mark.share(52, among="search: evaluation: gate")
@pytest.mark.parametrize(
    ("old", "new", "outcome", "why"),
    [
        # Names of its own, the same on both sides: what is proved would relate other rows than the problem's.
        ("dict(m=m, k=k)", "dict(m=m + M // 2048, k=k)", "unknown", "the tags do not specify the product"),
        (
            "    assume(K >= 1",
            "    tag(A.tile((32, 8), (0, 0)), lambda m, k: dict(m=m, k=k))\n    assume(K >= 1",
            "",
            "",
        ),
        ("assume(K >= 1, K % 4 == 0)", "assume(K >= 1, K <= 8, K % 4 == 0)", "ill-formed", "it assumes"),
        ("assume(K >= 1, K % 4 == 0)", "assume(K >= 1, K % 64 == 0)", "timed", ""),
        (
            "assume(K >= 1, K % 4 == 0)",
            "assume(K >= 4096, K % 4 == 0)",
            "unknown",
            "no sizes that it admits are small",
        ),
    ],
)
def test_tags_and_assumptions_of_a_text_must_satisfy_the_problem(
    tools: Tools, old: str, new: str, outcome: str, why: str
) -> None:
    text = TEXT.replace(old, new, 1)
    if "M // 2048" in text:
        text = text.replace("C, lambda m, n: dict(m=m, n=n)", "C, lambda m, n: dict(m=m + M // 2048, n=n)")
    found = evaluate(PROBLEM, "text-4", tools, text)

    assert text != TEXT
    assert found.outcome == outcome if outcome else found.outcome != "timed"
    assert why in found.why


def nothing(kernel: Kernel) -> str:
    del kernel
    return ""


@pytest.mark.share(12, among="texts for a problem")
def test_without_that_check_names_of_its_own_would_pass(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("dict(m=m, k=k)", "dict(m=m + M // 2048, k=k)", 1)
    text = text.replace("C, lambda m, n: dict(m=m, n=n)", "C, lambda m, n: dict(m=m + M // 2048, n=n)")
    monkeypatch.setattr("argus.search.problems.llm_kernels._wrong_tags", nothing)

    assert evaluate(PROBLEM, "text-5", tools, text).outcome == "timed"


SHORT = """
    short = registers(f32, mm.C)
    for k in loop(ceil_div(minimum(K, 2048), 8)):
        copy(A.tile((32, 8), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((32, 8), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, short, a, b, init=eq(k, 0))
    assert_covers(short.tag.k, 0, minimum(K, 2048), where=m * 32 < M)
    copy(short.to(bf16), C.tile((32, 32), (m, n)), edge=0)
"""


def with_a_short_sum() -> str:
    """The kernel claims a full sum over K, but stores a partial one, claimed under a condition that is always true."""
    stored = "    copy(acc.to(bf16), C.tile((32, 32), (m, n)), edge=0)\n"
    assert stored in TEXT
    return TEXT.replace(stored, SHORT.lstrip("\n"))


@pytest.mark.share(3)
def test_a_claim_under_a_condition_lets_no_shorter_sum_pass(tools: Tools) -> None:
    found = evaluate(PROBLEM, "text-6", tools, with_a_short_sum())

    assert (found.outcome, found.stage) == ("unknown", "invariants")
    assert "claim no product" in found.why


@pytest.mark.share(12, among="texts for a problem")
def test_without_that_check_a_shorter_sum_would_pass(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_all_elements(kernel: Kernel) -> Contraction | None:
        conditional = [s for s in kernel.prologue if isinstance(s, Assert) and isinstance(s.claim, Covers)][1:]
        return claimed_contraction(evolve(kernel, prologue=tuple(s for s in kernel.prologue if s not in conditional)))

    monkeypatch.setattr("argus.search.problems.llm_kernels.claimed_contraction", of_all_elements)

    assert evaluate(PROBLEM, "text-7", tools, with_a_short_sum()).outcome == "timed"


def test_parameters_in_another_order_are_refused(tools: Tools) -> None:
    a, b = 'A: Tensor["M K", bf16]', 'B: Tensor["N K", bf16]'
    found = evaluate(PROBLEM, "text-8", tools, TEXT.replace(f"{a}, {b}", f"{b}, {a}"))

    assert found.outcome == "ill-formed"
    assert "E907" in found.why


def test_a_design_that_does_not_take_the_extents_is_stopped(tools: Tools) -> None:
    found = evaluate(problem_of("gemm:100x100x7:bf16", "gfx942"), "cdna3", tools)

    assert found.outcome == "ill-formed"
    assert "K % 8 == 0" in found.why
