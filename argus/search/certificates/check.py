"""Checks a certificate from scratch: recomputes every claim from the kernel's IR.

A claim that cannot be recomputed here, such as a time measured on a GPU, is "not checked", never "ok".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argus.core.ir import Program
from argus.search.certificates.certificate import Certificate
from argus.search.certificates.check_code import check_build, check_files, predictable, rebuild_all
from argus.search.certificates.check_family import family_subject
from argus.search.certificates.check_file import file_subject
from argus.search.certificates.check_product import product_subject
from argus.search.certificates.check_result import Check, check_equal, failed, passed, unchecked
from argus.search.certificates.check_steps import (
    CheckOptions,
    check_proof,
    check_versions,
    load_kernel,
    result_or_failure,
)
from argus.search.certificates.check_times import check_baseline, check_claimed_time
from argus.search.certificates.file_claims import parse_name
from argus.search.problems.families.problem import is_family

_MEANS = CheckOptions()


def check_certificate(claimed: Certificate, folder: Path, means: CheckOptions = _MEANS) -> Iterator[Check]:
    """Yield the checks as they complete; stops at a failure that makes the remaining checks impossible.

    Raises ArgusError: E6xx without the solver, E302 if there is no writable folder to compile in.
    """
    of_file = parse_name(claimed.problem.name)
    yield from check_files(claimed, folder, of_file=of_file is not None)
    if of_file is not None:
        subject = file_subject(claimed, folder, of_file)
    else:
        subject = (family_subject if is_family(claimed.problem.name) else product_subject)(claimed)
    if isinstance(subject, Check):
        yield subject
        return
    yield check_equal("problem", claimed.problem, subject.problem, "name, target and sizes agree")
    kernel = load_kernel(claimed, folder, programs=subject.programs)
    if isinstance(kernel, Check):
        yield kernel
        return
    yield passed("ir", f"`{kernel.name}` is a well-formed kernel")
    if kernel.target.name != subject.problem.target:
        yield failed("target", f"the kernel is for {kernel.target.name}, the problem for {subject.problem.target}")
        return
    for check in subject.check_design(kernel):
        yield check
        if (check.name, check.state) == ("admitted", "FAILED"):
            return
    sizes = subject.sizes(kernel)
    yield from check_proof(claimed.proof, kernel, means, subject.unproved_part(kernel))
    made = result_or_failure("code", lambda: rebuild_all(kernel))
    if isinstance(made, Check):
        yield made
    else:
        stem = kernel.name if isinstance(kernel, Program) else made[0].stem
        yield from check_build(claimed, folder, kernel, sizes, subject.loader(kernel, stem), made)
    numbers, light = subject.check_numbers(kernel, means.seeds)
    yield from numbers
    if isinstance(light, Check):
        yield light
        light = None
    compiled = [] if isinstance(made, Check) else predictable(made)
    yield from check_claimed_time(claimed, sizes, light, subject.least(kernel), kernel, compiled)
    baseline = subject.baseline()
    if isinstance(baseline, Check):
        yield baseline
    else:
        yield check_baseline(claimed, *baseline, subject.sizes)
    yield check_versions(claimed)
    run = claimed.run
    yield unchecked("run", f"{run.name}, seed {run.seed}, {run.judged:,} candidates: recorded in its journal only")
