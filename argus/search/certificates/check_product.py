"""Checks of a certificate whose problem is a product of matrices: `argus.search.problems.problem.Gemm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.core.verdict import Proved
from argus.policy.bounds import Bounds
from argus.search.certificates import certificate, claims, product_claims
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_result import Check, brief, failed, passed, same, unchecked
from argus.search.certificates.check_steps import found_or_failed, of_runs, of_sizes, of_trace
from argus.search.certificates.load_script import loader
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.llm_kernels import check_parameters, unproved_part
from argus.search.problems.problem import Gemm, gemm_of


def product_subject(claimed: Certificate) -> Product | Check:
    asked = found_or_failed("problem", lambda: gemm_of(claimed.problem.name, claimed.problem.target))
    return asked if isinstance(asked, Check) else Product(claimed, asked)


@frozen
class Product:
    """A `Subject`: the claims, and the problem that their name states."""

    claimed: Certificate
    asked: Gemm

    @property
    def problem(self) -> certificate.Problem:
        return product_claims.problem(self.asked)

    @property
    def _written(self) -> bool:
        return self.claimed.design.knobs == claims.WRITTEN

    def of_design(self, kernel: Kernel) -> Iterator[Check]:
        claimed, asked = self.claimed.design, self.asked
        fits = found_or_failed("parameters", lambda: check_parameters(kernel, asked))
        yield fits if isinstance(fits, Check) else passed("parameters", "the kernel takes what the problem gives")
        yield of_sizes(kernel, asked.sizes)
        if self._written:
            yield unchecked("design", "written for the search: what is proved of it holds it to the problem")
            return
        found = found_or_failed("design", lambda: product_claims.design(asked, claimed.name))
        if isinstance(found, Check):
            yield found
            return
        yield same("design", claimed, found, f"`{found.name}` has these knobs and techniques")
        yield of_trace(found_or_failed("traced", lambda: asked.kernel(found.name)), kernel)

    def lacking(self, kernel: Kernel) -> Callable[[Proved], str]:
        return partial(unproved_part, kernel=kernel, written=self._written)

    def loader(self, kernel: Kernel, stem: str) -> str:
        return loader(kernel, stem, self.asked.sizes)

    def numbers(self, kernel: Kernel, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds]:
        return self._numbers(kernel, seeds), self.asked.bounds

    def _numbers(self, kernel: Kernel, seeds: Sequence[int]) -> Iterator[Check]:
        claimed = self.claimed.numbers
        said = evolve(claimed, runs=())
        yield same("tolerance", said, product_claims.numbers(()), "compared with float64, within rounding alone")
        known = _runs("runs", kernel, SEEDS)
        if isinstance(known, Check):
            yield known
            return
        yield of_runs(claimed.runs, known)
        fresh = _runs("fresh inputs", kernel, seeds)
        if isinstance(fresh, Check):
            yield fresh
            return
        wrong = [each for each in (*known, *fresh) if each.outside]
        told = ", ".join("x".join(map(str, each.shape)) for each in wrong or fresh)
        said_of = f"{told}, seeds {', '.join(map(str, seeds))}"
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
        return found_or_failed(name, lambda: product_claims.runs(kernel, seeds))
    except ValueError as problem:
        return failed(name, f"the kernel is no product of matrices: {brief(problem)}")
