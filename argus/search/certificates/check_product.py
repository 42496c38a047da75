"""The certificate's subject for a GEMM: `argus.search.problems.problem.Gemm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from attrs import frozen

from argus.core.ir import Kernel
from argus.core.verdict import Proved
from argus.policy.bounds import Bounds
from argus.search.certificates import certificate, claims, product_claims
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_claims import Claims, check_design, check_numbers
from argus.search.certificates.check_result import Check, brief, failed
from argus.search.certificates.check_steps import result_or_failure
from argus.search.certificates.load_script import loader
from argus.search.certificates.subject import single
from argus.search.problems.llm_kernels import unproved_part
from argus.search.problems.problem import Gemm, gemm_of
from argus.search.problems.traced import Traced


def product_subject(claimed: Certificate) -> Product | Check:
    """Create the subject, or return the failed check of the problem's name."""
    asked = result_or_failure("problem", lambda: gemm_of(claimed.problem.name, claimed.problem.target))
    return asked if isinstance(asked, Check) else Product(claimed, asked)


@frozen
class Product:
    """The `Subject` of a GEMM: claims, and the problem parsed from the claimed name."""

    claimed: Certificate
    asked: Gemm

    @property
    def problem(self) -> certificate.Problem:
        return product_claims.problem(self.asked)

    @property
    def programs(self) -> bool:
        return False

    def _claims(self, kernel: Kernel) -> Claims:
        return Claims(
            "written by a model: its proof relates it to the problem",
            lambda name: product_claims.design(self.asked, name),
            self.asked.kernel,
            "float64",
            product_claims.numbers(()),
            partial(_runs, kernel),
        )

    def sizes(self, kernel: Traced) -> Mapping[str, int]:  # noqa: ARG002 reason: the protocol's
        return self.asked.sizes

    def check_design(self, kernel: Traced) -> Iterator[Check]:
        return check_design(self.claimed, kernel, self.asked, self.asked.sizes, self._claims(single(kernel)))

    def unproved_part(self, kernel: Traced) -> Callable[[Proved], str]:
        written = self.claimed.design.knobs == claims.TEXT_KNOBS
        return partial(unproved_part, kernel=single(kernel), written=written)

    def loader(self, kernel: Traced, stem: str) -> str:
        return loader(single(kernel), stem, self.asked.sizes)

    def check_numbers(self, kernel: Traced, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds]:
        return check_numbers(self.claimed.numbers, self._claims(single(kernel)), seeds), self.asked.bounds

    def least(self, kernel: Traced) -> Bounds:  # noqa: ARG002 reason: the protocol's
        return self.asked.bounds

    def baseline(self) -> tuple[Baseline, Callable[[str], Traced]]:
        return product_claims.baseline(self.asked, {}), self.asked.kernel


def _runs(kernel: Kernel, name: str, seeds: Sequence[int]) -> tuple[certificate.Run, ...] | Check:
    try:
        return result_or_failure(name, lambda: product_claims.runs(kernel, seeds))
    except ValueError as problem:
        return failed(name, f"the kernel is not a matrix product: {brief(problem)}")
