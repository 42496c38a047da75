"""The certificate's subject for a kernel of a family: `argus.search.problems.families`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.policy.bounds import Bounds
from argus.search.certificates import certificate, claims, family_claims
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_result import Check, check_equal, failed, passed, unchecked
from argus.search.certificates.check_steps import check_runs, check_sizes, check_trace, result_or_failure
from argus.search.certificates.load_script import family_loader
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.families.problem import FamilyProblem, family_problem
from argus.search.problems.llm_kernels import check_parameters


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

    def check_design(self, kernel: Kernel) -> Iterator[Check]:
        claimed, asked = self.claimed.design, self.asked
        fits = result_or_failure("parameters", lambda: check_parameters(kernel, asked))
        yield fits if isinstance(fits, Check) else passed("parameters", "the kernel has the problem's parameters")
        yield check_sizes(kernel, asked.sizes)
        if claimed.knobs == claims.TEXT_KNOBS:
            yield unchecked("design", "written by a model: only its claims and the reference constrain it")
            return
        found = result_or_failure("design", lambda: family_claims.design(asked, claimed.name))
        if isinstance(found, Check):
            yield found
            return
        yield check_equal("design", claimed, found, f"`{found.name}` has these knobs and techniques")
        yield check_trace(result_or_failure("traced", lambda: cast(Kernel, asked.kernel(found.name))), kernel)

    def unproved_part(self, kernel: Kernel) -> None:
        """None: the claims are those of the family, or only its reference specifies the results."""

    def loader(self, kernel: Kernel, stem: str) -> str:
        return family_loader(kernel, stem, self.asked)

    def check_numbers(self, kernel: Kernel, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds]:
        return self._numbers(kernel, seeds), self.asked.bounds

    def _numbers(self, kernel: Kernel, seeds: Sequence[int]) -> Iterator[Check]:
        claimed = self.claimed.numbers
        same = "compared with the reference"
        yield check_equal("tolerance", evolve(claimed, runs=()), family_claims.numbers(()), same)
        known = result_or_failure("runs", lambda: family_claims.runs(kernel, self.asked, SEEDS))
        if isinstance(known, Check):
            yield known
            return
        yield check_runs(claimed.runs, known)
        fresh = result_or_failure("fresh inputs", lambda: family_claims.runs(kernel, self.asked, seeds))
        if isinstance(fresh, Check):
            yield fresh
            return
        wrong = [each for each in (*known, *fresh) if each.outside]
        shapes = ", ".join("x".join(map(str, each.shape)) for each in wrong or fresh)
        at = f"{shapes}, seeds {', '.join(map(str, seeds))}"
        if wrong:
            yield failed("fresh inputs", f"elements differ from the reference by more than rounding at {at}")
        else:
            yield passed("fresh inputs", f"the interpreter agrees with the reference at {at}")

    def least(self, kernel: Kernel) -> Bounds:  # noqa: ARG002 reason: the protocol's
        return self.asked.bounds

    def baseline(self) -> tuple[Baseline, Callable[[str], Kernel]]:
        return family_claims.baseline(self.asked, {}), lambda name: cast(Kernel, self.asked.kernel(name))
