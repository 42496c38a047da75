"""The checks of a problem that a name specifies, of a GEMM and of other families alike: the design, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from argus.search.certificates import claims
from argus.search.certificates.certificate import Certificate, Design, Numbers, Run
from argus.search.certificates.check_result import Check, check_equal, failed, passed, unchecked
from argus.search.certificates.check_steps import check_runs, check_sizes, check_trace, result_or_failure
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.llm_kernels import check_parameters
from argus.search.problems.problem import Problem
from argus.search.problems.traced import Traced


@frozen
class Claims:
    """What the claims of a problem are recomputed by.

    written: why the design of a kernel by a model is not checked. design: of a name. kernel: of a design's name.
    reference: its name, for messages. numbers: without runs. runs: by the name of the check and seeds; none where no
    sizes are small enough for the interpreter.
    """

    written: str
    design: Callable[[str], Design]
    kernel: Callable[[str], Traced]
    reference: str
    numbers: Numbers
    runs: Callable[[str, Sequence[int]], tuple[Run, ...] | Check]


def check_design(
    claimed: Certificate, kernel: Traced, asked: Problem, sizes: Mapping[str, int], by: Claims
) -> Iterator[Check]:
    """Check parameters, sizes, of which `sizes` are its own, and unless a model wrote it that it is the design's."""
    fits = result_or_failure("parameters", lambda: check_parameters(kernel, asked))
    yield fits if isinstance(fits, Check) else passed("parameters", "the kernel has the problem's parameters")
    yield check_sizes(kernel, sizes)
    if claimed.design.knobs == claims.TEXT_KNOBS:
        yield unchecked("design", by.written)
        return
    found = result_or_failure("design", lambda: by.design(claimed.design.name))
    if isinstance(found, Check):
        yield found
        return
    yield check_equal("design", claimed.design, found, f"`{found.name}` has these knobs and techniques")
    yield check_trace(result_or_failure("traced", lambda: by.kernel(found.name)), kernel)


def check_numbers(claimed: Numbers, by: Claims, seeds: Sequence[int]) -> Iterator[Check]:
    """Check that runs have the claimed errors, and that the results of other seeds are right as well."""
    said = f"compared with {by.reference}"
    yield check_equal("tolerance", evolve(claimed, runs=()), by.numbers, f"{said} up to rounding")
    known = by.runs("runs", SEEDS)
    if isinstance(known, Check):
        yield known
        return
    yield check_runs(claimed.runs, known)
    fresh = by.runs("fresh inputs", seeds)
    if isinstance(fresh, Check):
        yield fresh
        return
    if not fresh:
        yield unchecked("fresh inputs", "no sizes that the kernel admits are small enough for the interpreter")
        return
    wrong = [each for each in (*known, *fresh) if each.outside]
    shapes = ", ".join("x".join(map(str, each.shape)) for each in wrong or fresh)
    at = f"{shapes}, seeds {', '.join(map(str, seeds))}"
    if wrong:
        yield failed("fresh inputs", f"elements differ from {by.reference} by more than rounding at {at}")
    else:
        yield passed("fresh inputs", f"the interpreter agrees with {by.reference} at {at}")
