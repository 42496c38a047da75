"""A certificate checked from scratch: every claim is computed again from the kernel's IR.

What cannot be computed here, such as a time measured on a GPU, comes out as "not checked", never as "ok".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argus.search.certificates.certificate import Certificate
from argus.search.certificates.check_code import built, of_code, of_files
from argus.search.certificates.check_file import file_subject
from argus.search.certificates.check_product import product_subject
from argus.search.certificates.check_result import Check, failed, passed, same, unchecked
from argus.search.certificates.check_steps import Means, found_or_failed, kernel_of, of_proof, of_versions
from argus.search.certificates.check_times import of_baseline, of_time
from argus.search.certificates.file_claims import named

_MEANS = Means()


def certified(claimed: Certificate, folder: Path, means: Means = _MEANS) -> Iterator[Check]:
    """The checks, each as soon as it is done. The first failure that leaves nothing else to check ends them.

    Raises ArgusError: E6xx without the solver, E302 without room to compile.
    """
    of_file = named(claimed.problem.name)
    yield from of_files(claimed, folder, of_file=of_file is not None)
    subject = product_subject(claimed) if of_file is None else file_subject(claimed, folder, of_file)
    if isinstance(subject, Check):
        yield subject
        return
    yield same("problem", claimed.problem, subject.problem, "name, target and sizes agree")
    kernel = kernel_of(claimed, folder)
    if isinstance(kernel, Check):
        yield kernel
        return
    yield passed("ir", f"`{kernel.name}` is a well-formed kernel")
    if kernel.target.name != subject.problem.target:
        yield failed("target", f"the kernel is for {kernel.target.name}, the problem for {subject.problem.target}")
        return
    for check in subject.of_design(kernel):
        yield check
        if (check.name, check.state) == ("admitted", "FAILED"):
            return
    sizes = subject.problem.sizes
    yield from of_proof(claimed.proof, kernel, means, subject.lacking(kernel))
    made = found_or_failed("code", lambda: built(kernel))
    if isinstance(made, Check):
        yield made
    else:
        yield from of_code(claimed, folder, kernel, sizes, subject.loader(kernel, made.stem), made)
    numbers, light = subject.numbers(kernel, means.seeds)
    yield from numbers
    if isinstance(light, Check):
        yield light
        light = None
    compiled = None if isinstance(made, Check) else made.compiled
    yield from of_time(claimed, sizes, light, subject.least(kernel), kernel, compiled)
    baseline = subject.baseline()
    if isinstance(baseline, Check):
        yield baseline
    else:
        yield of_baseline(claimed, *baseline, sizes)
    yield of_versions(claimed)
    run = claimed.run
    yield unchecked("run", f"{run.name}, seed {run.seed}, {run.judged:,} candidates: its journal alone can tell")
