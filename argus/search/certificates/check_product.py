"""The certificate's subject for a GEMM: `argus.search.problems.problem.Gemm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.core.verdict import Proved
from argus.policy.bounds import Bounds
from argus.search.certificates import certificate, claims, product_claims
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_result import Check, brief, check_equal, failed, passed, unchecked
from argus.search.certificates.check_steps import check_runs, check_sizes, check_trace, result_or_failure
from argus.search.certificates.load_script import loader
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.llm_kernels import check_parameters, unproved_part
from argus.search.problems.problem import Gemm, gemm_of


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
    def _written(self) -> bool:
        return self.claimed.design.knobs == claims.TEXT_KNOBS

    def check_design(self, kernel: Kernel) -> Iterator[Check]:
        claimed, asked = self.claimed.design, self.asked
        fits = result_or_failure("parameters", lambda: check_parameters(kernel, asked))
        yield fits if isinstance(fits, Check) else passed("parameters", "the kernel has the problem's parameters")
        yield check_sizes(kernel, asked.sizes)
        if self._written:
            yield unchecked("design", "written by a model: its proof relates it to the problem")
            return
        found = result_or_failure("design", lambda: product_claims.design(asked, claimed.name))
        if isinstance(found, Check):
            yield found
            return
        yield check_equal("design", claimed, found, f"`{found.name}` has these knobs and techniques")
        yield check_trace(result_or_failure("traced", lambda: asked.kernel(found.name)), kernel)

    def unproved_part(self, kernel: Kernel) -> Callable[[Proved], str]:
        return partial(unproved_part, kernel=kernel, written=self._written)

    def loader(self, kernel: Kernel, stem: str) -> str:
        return loader(kernel, stem, self.asked.sizes)

    def check_numbers(self, kernel: Kernel, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds]:
        return self._numbers(kernel, seeds), self.asked.bounds

    def _numbers(self, kernel: Kernel, seeds: Sequence[int]) -> Iterator[Check]:
        claimed = self.claimed.numbers
        said = evolve(claimed, runs=())
        yield check_equal("tolerance", said, product_claims.numbers(()), "compared with float64 up to rounding")
        known = _runs("runs", kernel, SEEDS)
        if isinstance(known, Check):
            yield known
            return
        yield check_runs(claimed.runs, known)
        fresh = _runs("fresh inputs", kernel, seeds)
        if isinstance(fresh, Check):
            yield fresh
            return
        if not fresh:
            yield unchecked("fresh inputs", "no sizes that the kernel admits are small enough for the interpreter")
            return
        wrong = [each for each in (*known, *fresh) if each.outside]
        shapes = ", ".join("x".join(map(str, each.shape)) for each in wrong or fresh)
        said_of = f"{shapes}, seeds {', '.join(map(str, seeds))}"
        if wrong:
            yield failed("fresh inputs", f"elements differ from float64 by more than rounding at {said_of}")
        else:
            yield passed("fresh inputs", f"the interpreter agrees with float64 at {said_of}")

    def least(self, kernel: Kernel) -> Bounds:  # noqa: ARG002 reason: the protocol's
        return self.asked.bounds

    def baseline(self) -> tuple[Baseline, Callable[[str], Kernel]]:
        return product_claims.baseline(self.asked, {}), self.asked.kernel


def _runs(name: str, kernel: Kernel, seeds: Sequence[int]) -> tuple[certificate.Run, ...] | Check:
    try:
        return result_or_failure(name, lambda: product_claims.runs(kernel, seeds))
    except ValueError as problem:
        return failed(name, f"the kernel is not a matrix product: {brief(problem)}")
