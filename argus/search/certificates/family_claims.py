"""Computes the claims about a kernel of a family, which a problem's name specifies. Shared by delivery and check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Baseline, Design, Numbers, Run
from argus.search.certificates.file_claims import run
from argus.search.designs.usual import usual_design
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.references import TOLERANCE, random_trials
from argus.search.problems.traced import Traced

REFERENCE = "the family's reference in float64"


def problem(asked: FamilyProblem) -> certificate.Problem:
    return certificate.Problem(str(asked), asked.target, dict(asked.sizes))


def design(asked: FamilyProblem, name: str, text: str = "") -> Design:
    """The claims about a design. text: source of a kernel by a model. Raises ArgusError (E903) for an unknown name."""
    if text:
        return Design(name, dict(claims.TEXT_KNOBS), ())
    found = asked.design(name)
    return Design(name, {knob: str(value) for knob, value in found.knobs}, ())


def baseline(asked: FamilyProblem, times: Mapping[str, float]) -> Baseline:
    """The design used without a search. times: known times by design."""
    name, why = usual_design(asked)
    return Baseline(name, why, times.get(name))


def numbers(found: tuple[Run, ...]) -> Numbers:
    return Numbers(REFERENCE, TOLERANCE, found)


def runs(kernel: Traced, asked: FamilyProblem, seeds: Sequence[int]) -> tuple[Run, ...]:
    """Run the kernel in the interpreter against the reference. Raises ArgusError (E401, E402, E501)."""
    trials = random_trials(kernel, seeds, asked.inputs_of(kernel.name))
    return tuple(run(kernel, each, asked.answer(each.given)) for each in trials)
