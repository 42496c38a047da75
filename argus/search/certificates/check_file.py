"""The certificate's subject for a kernel of a user's file: checks with the file, and those possible without it.

The user's file is delivered with the kernel. It is untrusted code and runs only in the sandbox, which traces its
kernels, calls its reference and returns plain data. Claims that depend on the file are "not checked" if it is missing
or does not run there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.target import TARGETS
from argus.policy.bounds import CEILINGS, Bounds, bounds
from argus.runtime.sandbox import Refused, evaluate_reference, trace_text
from argus.runtime.sandbox.user_reference import Exact
from argus.search.certificates import claims, file_claims
from argus.search.certificates.certificate import Baseline, Certificate, Problem
from argus.search.certificates.check_result import Check, brief, check_equal, failed, passed, unchecked
from argus.search.certificates.check_steps import (
    MOST_BYTES,
    check_runs,
    check_sizes,
    check_trace,
    result_or_failure,
)
from argus.search.certificates.file_claims import ParsedName
from argus.search.certificates.load_script import file_loader
from argus.search.certificates.subject import single
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import Variant, digest_of, signature, variants_of
from argus.search.problems.references import Trial, random_trials
from argus.search.problems.traced import Traced
from argus.search.problems.workload import least_work, oversized_parameter, parse_declared_work, work_of
from argus.verifier.api import interpret
from argus.verifier.reference import claimed_contraction, compare_with_claims


@frozen
class Unavailable:
    """The user's file is missing or does not run. why: the reason."""

    why: str


@frozen(slots=False)
class _File:
    """The user's file, run in the sandbox."""

    text: str
    name: ParsedName
    target: str

    @cached_property
    def variants(self) -> Mapping[str, Variant] | Unavailable:
        """The file's designs by name."""
        found = trace_text(self.text, self.name.kernel)
        if isinstance(found, Refused):
            return Unavailable(_why(found))
        try:
            return variants_of(found, self.target, self.name.sizes)
        except (ArgusError, KeyError) as problem:
            return Unavailable(brief(problem))

    def answers(self, given: Sequence[Mapping[str, Exact]]) -> tuple[Sequence[object], object] | Unavailable:
        """Results of the reference for each call, and of its function `work`."""
        found = evaluate_reference(self.text, given, self.name.sizes)
        if isinstance(found, Refused):
            return Unavailable(_why(found))
        return [each.get("", each) for each in found.given], found.work


def _why(refused: Refused) -> str:
    return f"{refused.diagnostic.code}: {brief(refused.diagnostic.message)}"


def file_subject(claimed: Certificate, folder: Path, name: ParsedName) -> FileSubject | Check:
    """Create the subject. name: of the problem. Reads and digests the file without running it."""
    if claimed.problem.target not in (each.name for each in TARGETS):
        return failed("problem", f"there is no target `{brief(claimed.problem.target)}`")
    return FileSubject(claimed, name, _file(claimed, folder, name))


@frozen(slots=False)
class FileSubject:
    """The `Subject` of a kernel file. file: the user's file, or the check that could not read it."""

    claimed: Certificate
    name: ParsedName
    file: _File | Check

    @property
    def problem(self) -> Problem:
        return Problem(self.claimed.problem.name, self.claimed.problem.target, dict(self.name.sizes))

    @cached_property
    def variants(self) -> Mapping[str, Variant] | Unavailable:
        """The file's designs."""
        return self.file.variants if isinstance(self.file, _File) else Unavailable(self.file.why)

    @property
    def programs(self) -> bool:
        return False

    def sizes(self, kernel: Traced) -> Mapping[str, int]:  # noqa: ARG002 reason: the protocol's
        return self.name.sizes

    def check_design(self, kernel: Traced) -> Iterator[Check]:
        sizes, kernel = self.name.sizes, single(kernel)
        admitted = check_sizes(kernel, sizes)
        if admitted.state != "FAILED" and oversized_parameter(kernel, sizes) is not None:
            admitted = failed("admitted", f"a tensor exceeds any GPU's memory at {sizes}")
        yield admitted
        at_hand = passed("problem text", "its digest is that in the problem's name")
        yield at_hand if isinstance(self.file, _File) else self.file
        yield from _check_design(self.claimed, self.variants, kernel)

    def unproved_part(self, kernel: Traced) -> None:
        """None: only the file's reference specifies the results."""

    def loader(self, kernel: Traced, stem: str) -> str:
        return file_loader(single(kernel), stem, self.name.sizes, file_claims.PROBLEM)

    def check_numbers(self, kernel: Traced, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds | Check | None]:
        kernel = single(kernel)
        claimed, others = (_trials(kernel, each) for each in (SEEDS, seeds))
        if isinstance(claimed, Check) or isinstance(others, Check):
            return (each for each in (claimed, others) if isinstance(each, Check)), None
        every = [*claimed, *others]
        file = self.file
        found = file.answers([each.given for each in every]) if isinstance(file, _File) else Unavailable(file.why)
        checks = chain(_check_runs(self.claimed, kernel, every, len(claimed), found), _check_claims(kernel, every))
        return checks, _problem_bounds(self.problem, self.variants, found)

    def least(self, kernel: Traced) -> Bounds:
        return bounds(work_of(single(kernel), self.name.sizes).work, CEILINGS[self.problem.target])

    def baseline(self) -> tuple[Baseline, Callable[[str], Traced]] | Check:
        variants = self.variants
        if isinstance(variants, Unavailable) or not variants:
            return unchecked("baseline", "the file's kernels are unknown")
        return file_claims.baseline(variants.values(), {}), lambda name: variants[name].kernel


def _file(claimed: Certificate, folder: Path, name: ParsedName) -> _File | Check:
    """The user's file in the folder, if its digest matches the problem's name."""
    if "problem" not in claimed.files:
        return failed("problem text", "the certificate lists no problem file")
    path = folder / claimed.files["problem"].name
    try:
        if path.stat().st_size > MOST_BYTES:
            return failed("problem text", f"{path.name} is larger than {MOST_BYTES:,} bytes")
        data = path.read_bytes()
        text = data.decode("utf-8")
    except FileNotFoundError:
        return unchecked("problem text", f"{path.name} is missing")
    except (OSError, ValueError) as problem:
        return failed("problem text", f"{path.name} is not text: {brief(problem)}")
    if digest_of(data) != name.digest:
        return failed("problem text", f"{path.name} has the digest {digest_of(data)}, the problem names {name.digest}")
    return _File(text, name, claimed.problem.target)


def _check_design(
    claimed: Certificate, variants: Mapping[str, Variant] | Unavailable, kernel: Kernel
) -> Iterator[Check]:
    if isinstance(variants, Unavailable):
        yield unchecked("parameters", f"the file's kernels are unknown: {variants.why}")
        yield unchecked("design", f"the file's kernels are unknown: {variants.why}")
        return
    if not variants:
        yield failed("parameters", "the file has no kernel for the target that accepts these sizes")
        return
    expected = signature(next(iter(variants.values())).kernel)
    yield check_equal("parameters", signature(kernel), expected, "the kernel has the parameters of the file's kernels")
    if claimed.design.knobs == claims.TEXT_KNOBS:
        yield unchecked("design", "written by a model: only its claims and the file's reference constrain it")
        return
    variant = variants.get(claimed.design.name)
    if variant is None:
        yield failed("design", f"the file has no design `{brief(claimed.design.name)}`")
        return
    yield check_equal(
        "design", claimed.design, file_claims.design(variant), f"`{variant.name}` has these knobs and techniques"
    )
    yield check_trace(variant.kernel, kernel)


def _trials(kernel: Kernel, seeds: Sequence[int]) -> list[Trial] | Check:
    return result_or_failure("runs", lambda: list(random_trials(kernel, seeds)))


def _check_runs(
    claimed: Certificate,
    kernel: Kernel,
    every: Sequence[Trial],
    known: int,
    answers: tuple[Sequence[object], object] | Unavailable,
) -> Iterator[Check]:
    """Repeat the claimed runs, and do others, against the reference of the user's file.

    known: number of trials, at the front, that the certificate claims.
    """
    said = evolve(claimed.numbers, runs=())
    yield check_equal("tolerance", said, file_claims.numbers(()), f"compared with `{said.reference}`")
    if not every:
        for name in ("runs", "fresh inputs"):
            yield unchecked(name, "no sizes that the kernel admits are small enough for the interpreter")
        return
    if isinstance(answers, Unavailable):
        for name in ("runs", "fresh inputs"):
            yield unchecked(name, f"the reference does not run: {answers.why}")
        return
    pairs = list(zip(every, answers[0], strict=True))
    found = result_or_failure("runs", lambda: [file_claims.run(kernel, trial, expected) for trial, expected in pairs])
    if isinstance(found, Check):
        yield found
        return
    yield check_runs(claimed.numbers.runs, found[:known])
    wrong = [trial.at for trial, run in zip(every, found, strict=True) if run.outside]
    if wrong:
        yield failed("fresh inputs", f"elements differ from the reference by more than rounding at {'; '.join(wrong)}")
    else:
        trials = "; ".join(trial.at for trial in every[known:])
        yield passed("fresh inputs", f"the interpreter agrees with the reference at {trials}")


def _check_claims(kernel: Kernel, every: Sequence[Trial]) -> Iterator[Check]:
    claim = result_or_failure("claims", lambda: _compare_with_claims(kernel, every))
    if claim is not None:
        yield claim


def _compare_with_claims(kernel: Kernel, every: Sequence[Trial]) -> Check | None:
    """Compare the interpreter with the claimed matrix product in float64, without the user's file."""
    claimed = claimed_contraction(kernel)
    if claimed is None or not every:
        return None
    for trial in every:
        made = interpret(kernel, *trial.arrays.values(), tags=False)[claimed.output.name]
        found = compare_with_claims(claimed, trial.arrays, made, trial.seed)
        if not found.right:
            return failed("claims", f"{found.outside:,} elements differ from {found.with_what} at {trial.at}")
    return passed("claims", "the interpreter agrees with the claimed product up to rounding")


def _problem_bounds(
    asked: Problem,
    variants: Mapping[str, Variant] | Unavailable,
    answers: tuple[Sequence[object], object] | Unavailable,
) -> Bounds | Check | None:
    """The problem's bounds, from the work that the file declares, else from its kernels; None if unknown."""
    if isinstance(variants, Unavailable) or isinstance(answers, Unavailable) or not variants:
        return None
    work = answers[1]
    if work is not None:
        counted = result_or_failure("work", lambda: parse_declared_work(work))
        return counted if isinstance(counted, Check) else bounds(counted.work, CEILINGS[asked.target])
    made = [work_of(each.kernel, asked.sizes) for each in variants.values() if not each.steps]
    return bounds(least_work(made).work, CEILINGS[asked.target])
