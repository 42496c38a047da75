"""Checks of a verdict: whether a candidate is proved, and whether a written kernel proves its problem's claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from attrs import define

from argus.core.diagnostic import Diagnostic
from argus.core.ir import Kernel
from argus.core.verdict import ProgramReport, Proved, Refuted, Report
from argus.policy.llm.own_claims import OWN
from argus.policy.planner import Outcome
from argus.report.json_document import report_json
from argus.search.problems.llm_kernels import unproved_part
from argus.search.problems.own_claims import own_claims_alone, own_names, without_own_claims
from argus.search.problems.problem import Gemm, Problem
from argus.search.problems.problem_claim import missing_part, problem_claim
from argus.search.problems.traced import Traced

_BUDGETS = "I22"
"""The invariant of resource limits."""
Verify = Callable[[Traced], "Report | ProgramReport"]


@define
class Rejected(Exception):  # noqa: N818 reason: a result, not an error
    """A candidate does not pass a stage."""

    outcome: Outcome
    why: str
    counterexample: Mapping[str, object] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def check_written(problem: Problem, kernel: Kernel, verify: Verify) -> tuple[str, ...]:
    """Check a kernel from source text, whose claims may be too weak, and false beside the problem's; returns notes.

    The problem's claim is proved without names and assertions of the author's own, which are checked apart: one that is
    refuted is a refusal with its counterexample, as it shows that the author has misunderstood the kernel.
    """
    claim = None if isinstance(problem, Gemm) else problem_claim(problem, verify)
    own = own_names(kernel, None if claim is None else claim.names)
    plain = without_own_claims(kernel, own)
    report = verify(plain)
    if isinstance(report.verdict, Proved):
        weak = unproved_part(report.verdict, plain, written=True) if isinstance(problem, Gemm) else ""
        weak = missing_part(report.verdict, plain, claim) if claim is not None else weak
        if weak:
            raise Rejected("unknown", weak)
    check_report(report)
    if not own:
        return ()
    beside = _blamed(verify(own_claims_alone(kernel)))
    match beside.verdict:
        case Refuted(counterexample):
            why = f"{OWN}: {counterexample.code}: {counterexample.message}"
            raise Rejected("refuted", why, _counterexample(beside), beside.diagnostics)
        case Proved():
            return (f"own claims about {', '.join(sorted(own))} are proved",)
        case _:
            return (f"own claims about {', '.join(sorted(own))} are not decided",)


def check_report(report: Report | ProgramReport) -> None:
    """Raises Rejected unless proved."""
    match report.verdict:
        case Proved():
            if isinstance(report, Report) and report.uncovered:
                raise Rejected("unknown", f"no claim covers {', '.join(report.uncovered)}")
        case Refuted(counterexample):
            outcome: Outcome = "over limits" if counterexample.code == _BUDGETS else "refuted"
            why, blamed = f"{counterexample.code}: {counterexample.message}", _blamed(report)
            raise Rejected(outcome, why, _counterexample(blamed), blamed.diagnostics)
        case _:
            told = _blamed(report).diagnostics
            raise Rejected("unknown", told[0].primary.text if told else "not decided", diagnostics=told)


def _blamed(report: Report | ProgramReport) -> Report:
    """The report of the kernel, or of the launch that decides the verdict of a program."""
    if isinstance(report, Report):
        return report
    kind = type(report.verdict)
    return next((each for each in report.launches if isinstance(each.verdict, kind)), report.launches[0])


def _counterexample(report: Report) -> Mapping[str, object] | None:
    found = report_json(report)["counterexample"]
    return cast("Mapping[str, object] | None", found)
