"""The certificate of a kernel of a user's own file: what can be known of it without that file, and what with it.

The user's file is delivered beside the kernel. It is somebody's code: it runs in a contained process alone, which
traces its kernels and asks its reference, and only data come out. Where it is not at hand, or does not run there, what
it alone can tell is not checked.
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
from argus.runtime.sandbox import Refused, referred, traced
from argus.runtime.sandbox.answers import Exact
from argus.search.certificates import claims, file_claims
from argus.search.certificates.certificate import Baseline, Certificate, Problem
from argus.search.certificates.check_result import Check, brief, failed, passed, same, unchecked
from argus.search.certificates.check_steps import (
    MOST_BYTES,
    found_or_failed,
    of_runs,
    of_sizes,
    of_trace,
)
from argus.search.certificates.file_claims import Named
from argus.search.certificates.load_script import loader_of_file
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import Variant, digest_of, signature, variants_of
from argus.search.problems.references import Trial, random_trials
from argus.search.problems.workload import least_work, oversized_parameter, parse_declared_work, work_of
from argus.verifier.api import interpret
from argus.verifier.reference import compared_with_claims, contraction


@frozen
class Lost:
    """Why nothing is known of the user's file."""

    why: str


@frozen(slots=False)
class _File:
    """The user's file, as it runs in a contained process."""

    text: str
    name: Named
    target: str

    @cached_property
    def variants(self) -> Mapping[str, Variant] | Lost:
        """Its designs."""
        found = traced(self.text, self.name.kernel)
        if isinstance(found, Refused):
            return Lost(_why(found))
        try:
            return variants_of(found, self.target, self.name.sizes)
        except (ArgusError, KeyError) as problem:
            return Lost(brief(problem))

    def answers(self, given: Sequence[Mapping[str, Exact]]) -> tuple[Sequence[object], object] | Lost:
        """What its reference gives for each call, and its `work`."""
        found = referred(self.text, given, self.name.sizes)
        if isinstance(found, Refused):
            return Lost(_why(found))
        return [each.get("", each) for each in found.given], found.work


def _why(refused: Refused) -> str:
    return f"{refused.diagnostic.code}: {brief(refused.diagnostic.message)}"


def file_subject(claimed: Certificate, folder: Path, name: Named) -> FileSubject | Check:
    """name: of the problem. The file's text is read from the folder and digested; nothing of it runs yet."""
    if claimed.problem.target not in (each.name for each in TARGETS):
        return failed("problem", f"there is no target `{brief(claimed.problem.target)}`")
    return FileSubject(claimed, name, _file(claimed, folder, name))


@frozen(slots=False)
class FileSubject:
    """A `Subject`: the claims, what the problem's name says, and the user's file or why it is not at hand."""

    claimed: Certificate
    name: Named
    file: _File | Check

    @property
    def problem(self) -> Problem:
        return Problem(self.claimed.problem.name, self.claimed.problem.target, dict(self.name.sizes))

    @cached_property
    def variants(self) -> Mapping[str, Variant] | Lost:
        """The file's designs."""
        return self.file.variants if isinstance(self.file, _File) else Lost(self.file.why)

    def of_design(self, kernel: Kernel) -> Iterator[Check]:
        sizes = self.name.sizes
        admitted = of_sizes(kernel, sizes)
        if admitted.state != "FAILED" and oversized_parameter(kernel, sizes) is not None:
            admitted = failed("admitted", f"a tensor is larger than any memory at {sizes}")
        yield admitted
        at_hand = passed("problem text", "its digest is that of the problem's name")
        yield at_hand if isinstance(self.file, _File) else self.file
        yield from _design(self.claimed, self.variants, kernel)

    def lacking(self, kernel: Kernel) -> None:
        """The file's reference alone says which results are right."""

    def loader(self, kernel: Kernel, stem: str) -> str:
        return loader_of_file(kernel, stem, self.name.sizes, file_claims.PROBLEM)

    def numbers(self, kernel: Kernel, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds | Check | None]:
        claimed, others = (_trials(kernel, each) for each in (SEEDS, seeds))
        if isinstance(claimed, Check) or isinstance(others, Check):
            return (each for each in (claimed, others) if isinstance(each, Check)), None
        every = [*claimed, *others]
        file = self.file
        found = file.answers([each.given for each in every]) if isinstance(file, _File) else Lost(file.why)
        checks = chain(_compared(self.claimed, kernel, every, len(claimed), found), _of_claims(kernel, every))
        return checks, _light(self.problem, self.variants, found)

    def least(self, kernel: Kernel) -> Bounds:
        return bounds(work_of(kernel, self.name.sizes).work, CEILINGS[self.problem.target])

    def baseline(self) -> tuple[Baseline, Callable[[str], Kernel]] | Check:
        variants = self.variants
        if isinstance(variants, Lost) or not variants:
            return unchecked("baseline", "nothing is known of the file's kernels")
        return file_claims.baseline(variants.values(), {}), lambda name: variants[name].kernel


def _file(claimed: Certificate, folder: Path, name: Named) -> _File | Check:
    """The user's file as it lies in the folder, if it is the one that the problem names."""
    if "problem" not in claimed.files:
        return failed("problem text", "the certificate names no file of the problem")
    path = folder / claimed.files["problem"].name
    try:
        if path.stat().st_size > MOST_BYTES:
            return failed("problem text", f"{path.name} is larger than {MOST_BYTES:,} bytes")
        data = path.read_bytes()
        text = data.decode("utf-8")
    except FileNotFoundError:
        return unchecked("problem text", f"{path.name} is not here")
    except (OSError, ValueError) as problem:
        return failed("problem text", f"{path.name} is no text: {brief(problem)}")
    if digest_of(data) != name.digest:
        return failed("problem text", f"{path.name} has the digest {digest_of(data)}, the problem names {name.digest}")
    return _File(text, name, claimed.problem.target)


def _design(claimed: Certificate, variants: Mapping[str, Variant] | Lost, kernel: Kernel) -> Iterator[Check]:
    if isinstance(variants, Lost):
        yield unchecked("parameters", f"nothing is known of the file's kernels: {variants.why}")
        yield unchecked("design", f"nothing is known of the file's kernels: {variants.why}")
        return
    if not variants:
        yield failed("parameters", "the file has no kernel for the target that takes these sizes")
        return
    expected = signature(next(iter(variants.values())).kernel)
    yield same("parameters", signature(kernel), expected, "the kernel takes what those of the file take")
    if claimed.design.knobs == claims.WRITTEN:
        yield unchecked("design", "written for the search: its own claims and the file's reference alone hold it")
        return
    variant = variants.get(claimed.design.name)
    if variant is None:
        yield failed("design", f"the file has no design `{brief(claimed.design.name)}`")
        return
    yield same(
        "design", claimed.design, file_claims.design(variant), f"`{variant.name}` has these knobs and techniques"
    )
    yield of_trace(variant.kernel, kernel)


def _trials(kernel: Kernel, seeds: Sequence[int]) -> list[Trial] | Check:
    return found_or_failed("runs", lambda: list(random_trials(kernel, seeds)))


def _compared(
    claimed: Certificate,
    kernel: Kernel,
    every: Sequence[Trial],
    known: int,
    answers: tuple[Sequence[object], object] | Lost,
) -> Iterator[Check]:
    """The runs that are named, again, and others, beside the reference of the user's file. known: how many of all
    trials are those that a delivery names.
    """
    said = evolve(claimed.numbers, runs=())
    yield same("tolerance", said, file_claims.numbers(()), f"compared with `{said.reference}`")
    if isinstance(answers, Lost):
        for name in ("runs", "fresh inputs"):
            yield unchecked(name, f"the reference does not answer: {answers.why}")
        return
    pairs = list(zip(every, answers[0], strict=True))
    found = found_or_failed("runs", lambda: [file_claims.run(kernel, trial, expected) for trial, expected in pairs])
    if isinstance(found, Check):
        yield found
        return
    yield of_runs(claimed.numbers.runs, found[:known])
    wrong = [trial.at for trial, run in zip(every, found, strict=True) if run.outside]
    if wrong:
        yield failed("fresh inputs", f"elements differ from the reference by more than rounding at {'; '.join(wrong)}")
    else:
        told = "; ".join(trial.at for trial in every[known:])
        yield passed("fresh inputs", f"the interpreter agrees with the reference at {told}")


def _of_claims(kernel: Kernel, every: Sequence[Trial]) -> Iterator[Check]:
    claim = found_or_failed("claims", lambda: _claims(kernel, every))
    if claim is not None:
        yield claim


def _claims(kernel: Kernel, every: Sequence[Trial]) -> Check | None:
    """What is proved of a product of matrices, beside float64, for which nobody's file is needed."""
    claimed = contraction(kernel)
    if claimed is None:
        return None
    for trial in every:
        made = interpret(kernel, *trial.arrays.values())[claimed.output.name]
        found = compared_with_claims(claimed, trial.arrays, made, trial.seed)
        if not found.right:
            return failed("claims", f"{found.outside:,} elements differ from {found.with_what} at {trial.at}")
    return passed("claims", "the interpreter agrees with the product that is claimed, within rounding alone")


def _light(
    asked: Problem, variants: Mapping[str, Variant] | Lost, answers: tuple[Sequence[object], object] | Lost
) -> Bounds | Check | None:
    """The bounds of the problem, from what the file declares or from its kernels."""
    if isinstance(variants, Lost) or isinstance(answers, Lost) or not variants:
        return None
    work = answers[1]
    if work is not None:
        counted = found_or_failed("work", lambda: parse_declared_work(work))
        return counted if isinstance(counted, Check) else bounds(counted.work, CEILINGS[asked.target])
    made = [work_of(each.kernel, asked.sizes) for each in variants.values() if not each.steps]
    return bounds(least_work(made).work, CEILINGS[asked.target])
