"""The certificate of a kernel of a user's own file: what can be known of it without that file, and what with it.

The user's file is delivered beside the kernel. It is somebody's code: it runs in a contained process alone, which
traces its kernels and asks its reference, and only data come out. Where it is not at hand, or does not run there, what
it alone can tell is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.target import TARGETS
from argus.policy.bounds import CEILINGS, Bounds, bounds
from argus.runtime.sandbox import Refused, referred, traced
from argus.runtime.sandbox.answers import Exact
from argus.search.certificates import claims, file_certificate
from argus.search.certificates.certificate import Certificate, Problem
from argus.search.certificates.check_code import built, of_code
from argus.search.certificates.check_result import Check, brief, failed, passed, same, unchecked
from argus.search.certificates.check_steps import (
    MOST_BYTES,
    Means,
    agree,
    found_or_failed,
    kernel_of,
    of_proof,
    of_sizes,
    of_trace,
    of_versions,
)
from argus.search.certificates.check_times import of_baseline, of_time
from argus.search.certificates.file_certificate import Named
from argus.search.certificates.load_script import loader_of_file
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import Variant, digest_of, signature, variants_of
from argus.search.problems.references import Trial, trials
from argus.search.problems.workload import beyond_memory, declared, least_of, work_of
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


def of_kernel_file(claimed: Certificate, folder: Path, name: Named, means: Means) -> Iterator[Check]:
    """After the digests of files. Raises ArgusError as `certified` does."""
    asked = Problem(claimed.problem.name, claimed.problem.target, dict(name.sizes))
    if claimed.problem.target not in (each.name for each in TARGETS):
        yield failed("problem", f"there is no target `{brief(claimed.problem.target)}`")
        return
    yield same("problem", claimed.problem, asked, "name and sizes agree")
    kernel = kernel_of(claimed, folder)
    if isinstance(kernel, Check):
        yield kernel
        return
    yield passed("ir", f"`{kernel.name}` is a well-formed kernel")
    if kernel.target.name != asked.target:
        yield failed("target", f"the kernel is for {kernel.target.name}, the problem for {asked.target}")
        return
    admitted = of_sizes(kernel, name.sizes)
    if admitted.state != "FAILED" and beyond_memory(kernel, name.sizes) is not None:
        admitted = failed("admitted", f"a tensor is larger than any memory at {name.sizes}")
    yield admitted
    if admitted.state == "FAILED":
        return
    file = _file(claimed, folder, name)
    yield passed("problem text", "its digest is that of the problem's name") if isinstance(file, _File) else file
    variants = file.variants if isinstance(file, _File) else Lost(file.why)
    yield from _design(claimed, variants, kernel)
    yield from of_proof(claimed.proof, kernel, means, None)
    made = found_or_failed("code", lambda: built(kernel))
    if isinstance(made, Check):
        yield made
    else:
        script = loader_of_file(kernel, made.stem, name.sizes, file_certificate.PROBLEM)
        yield from of_code(claimed, folder, kernel, name.sizes, script, made)
    named, others = (_trials(kernel, seeds) for seeds in (SEEDS, means.seeds))
    if isinstance(named, Check) or isinstance(others, Check):
        yield from (each for each in (named, others) if isinstance(each, Check))
        return
    every = [*named, *others]
    answers = file.answers([each.given for each in every]) if isinstance(file, _File) else Lost(file.why)
    yield from _numbers(claimed, kernel, every, len(named), answers)
    claim = found_or_failed("claims", lambda: _claims(kernel, every))
    if claim is not None:
        yield claim
    compiled = None if isinstance(made, Check) else made.compiled
    light = _light(asked, variants, answers)
    least = bounds(work_of(kernel, name.sizes).work, CEILINGS[asked.target])
    if isinstance(light, Check):
        yield light
        light = None
    yield from of_time(claimed, name.sizes, light, least, kernel, compiled)
    yield _baseline(claimed, variants, name.sizes)
    yield of_versions(claimed)
    run = claimed.run
    yield unchecked("run", f"{run.name}, seed {run.seed}, {run.judged:,} candidates: its journal alone can tell")


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
        "design", claimed.design, file_certificate.design(variant), f"`{variant.name}` has these knobs and techniques"
    )
    yield of_trace(variant.kernel, kernel)


def _trials(kernel: Kernel, seeds: Sequence[int]) -> list[Trial] | Check:
    return found_or_failed("runs", lambda: list(trials(kernel, seeds)))


def _numbers(
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
    yield same("tolerance", said, file_certificate.numbers(()), f"compared with `{said.reference}`")
    if isinstance(answers, Lost):
        for name in ("runs", "fresh inputs"):
            yield unchecked(name, f"the reference does not answer: {answers.why}")
        return
    pairs = list(zip(every, answers[0], strict=True))
    found = found_or_failed(
        "runs", lambda: [file_certificate.run(kernel, trial, expected) for trial, expected in pairs]
    )
    if isinstance(found, Check):
        yield found
        return
    again = found[:known]
    alike = len(again) == len(claimed.numbers.runs) and all(map(agree, claimed.numbers.runs, again))
    why = f"{len(again)} runs give the errors that are claimed"
    yield passed("runs", why) if alike else failed("runs", f"{why}: they give others")
    wrong = [trial.at for trial, run in zip(every, found, strict=True) if run.outside]
    if wrong:
        yield failed("fresh inputs", f"elements differ from the reference by more than rounding at {'; '.join(wrong)}")
    else:
        told = "; ".join(trial.at for trial in every[known:])
        yield passed("fresh inputs", f"the interpreter agrees with the reference at {told}")


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
        counted = found_or_failed("work", lambda: declared(work))
        return counted if isinstance(counted, Check) else bounds(counted.work, CEILINGS[asked.target])
    made = [work_of(each.kernel, asked.sizes) for each in variants.values() if not each.steps]
    return bounds(least_of(made).work, CEILINGS[asked.target])


def _baseline(claimed: Certificate, variants: Mapping[str, Variant] | Lost, sizes: Mapping[str, int]) -> Check:
    if isinstance(variants, Lost) or not variants:
        return unchecked("baseline", "nothing is known of the file's kernels")
    found = file_certificate.baseline(variants.values(), {})
    return of_baseline(claimed, found, lambda name: variants[name].kernel, sizes)
