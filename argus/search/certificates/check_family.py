"""The certificate's subject for a kernel or program of a family: `argus.search.problems.families`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from argus.policy.bounds import Bounds
from argus.search.certificates import certificate, family_claims
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_claims import Claims, check_design, check_numbers
from argus.search.certificates.check_result import Check, failed
from argus.search.certificates.check_steps import result_or_failure
from argus.search.certificates.load_script import family_loader
from argus.search.problems.families.problem import FamilyProblem, family_problem
from argus.search.problems.traced import Traced


def family_subject(claimed: Certificate) -> Family | Check:
    """Create the subject, or return the failed check of the problem's name; no file that it names is run."""
    if claimed.problem.name.partition(":")[0] == "torch":
        return failed("problem", "a torch module has no certificate")
    asked = result_or_failure("problem", lambda: family_problem(claimed.problem.name, claimed.problem.target))
    return asked if isinstance(asked, Check) else Family(claimed, asked)


@frozen
class Family:
    """The `Subject` of a kernel of a family: claims, and the problem parsed from the claimed name."""

    claimed: Certificate
    asked: FamilyProblem

    @property
    def problem(self) -> certificate.Problem:
        return family_claims.problem(self.asked)

    @property
    def programs(self) -> bool:
        return True

    def _claims(self, kernel: Traced) -> Claims:
        return Claims(
            "written by a model: only its claims and the reference constrain it",
            lambda name: family_claims.design(self.asked, name),
            self.asked.kernel,
            "the reference",
            family_claims.numbers(()),
            lambda name, seeds: result_or_failure(name, lambda: family_claims.runs(kernel, self.asked, seeds)),
        )

    def sizes(self, kernel: Traced) -> Mapping[str, int]:
        return self.asked.sizes_of(kernel.name)

    def check_design(self, kernel: Traced) -> Iterator[Check]:
        return check_design(self.claimed, kernel, self.asked, self.sizes(kernel), self._claims(kernel))

    def unproved_part(self, kernel: Traced) -> None:
        """None: the claims are those of the family, or only its reference specifies the results."""

    def loader(self, kernel: Traced, stem: str) -> str:
        return family_loader(kernel, stem, self.asked)

    def check_numbers(self, kernel: Traced, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds]:
        return check_numbers(self.claimed.numbers, self._claims(kernel), seeds), self.asked.bounds

    def least(self, kernel: Traced) -> Bounds:  # noqa: ARG002 reason: the protocol's
        return self.asked.bounds

    def baseline(self) -> tuple[Baseline, Callable[[str], Traced]]:
        return family_claims.baseline(self.asked, {}), self.asked.kernel
