"""A certificate checked from scratch: all is found again from the kernel's IR, and nothing that is claimed is believed.

What cannot be found again here, such as a time measured on a GPU, is told as not checked, never as right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from attrs import evolve

from argus.core.ir import Kernel
from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Certificate, Numbers
from argus.search.certificates.check_code import built, of_code, of_files
from argus.search.certificates.check_file import of_kernel_file
from argus.search.certificates.check_result import Check, brief, failed, passed, same, unchecked
from argus.search.certificates.check_steps import (
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
from argus.search.certificates.file_certificate import named
from argus.search.certificates.load_script import loader
from argus.search.evaluation.numerics import REFERENCE, SEEDS, TOLERANCE
from argus.search.problems.llm_kernels import fitting, short
from argus.search.problems.problem import Gemm, gemm_of

_MEANS = Means()


def certified(claimed: Certificate, folder: Path, means: Means = _MEANS) -> Iterator[Check]:
    """The checks, each told as it is done; after one without which others mean nothing there are no more.

    Raises ArgusError: E6xx without the solver, E302 without room to compile.
    """
    of_file = named(claimed.problem.name)
    yield from of_files(claimed, folder, of_file=of_file is not None)
    if of_file is None:
        yield from _of_product(claimed, folder, means)
    else:
        yield from of_kernel_file(claimed, folder, of_file, means)


def _of_product(claimed: Certificate, folder: Path, means: Means) -> Iterator[Check]:
    asked = found_or_failed("problem", lambda: gemm_of(claimed.problem.name, claimed.problem.target))
    if isinstance(asked, Check):
        yield asked
        return
    yield same("problem", claimed.problem, claims.problem(asked), "name, target and extents agree")
    kernel = kernel_of(claimed, folder)
    if isinstance(kernel, Check):
        yield kernel
        return
    yield passed("ir", f"`{kernel.name}` is a well-formed kernel")
    yield from _design(claimed, asked, kernel)
    written = claimed.design.knobs == claims.WRITTEN
    yield from of_proof(claimed.proof, kernel, means, partial(short, kernel=kernel, written=written))
    made = found_or_failed("code", lambda: built(kernel))
    if isinstance(made, Check):
        yield made
    else:
        yield from of_code(claimed, folder, kernel, asked.sizes, loader(kernel, made.stem, asked.sizes), made)
    yield from _numbers(claimed.numbers, kernel, means.seeds)
    compiled = None if isinstance(made, Check) else made.compiled
    yield from of_time(claimed, asked.sizes, asked.bounds, asked.bounds, kernel, compiled)
    yield of_baseline(claimed, claims.baseline(asked, {}), asked.kernel, asked.sizes)
    yield of_versions(claimed)
    run = claimed.run
    yield unchecked("run", f"{run.name}, seed {run.seed}, {run.judged:,} candidates: its journal alone can tell")


def _design(claimed: Certificate, asked: Gemm, kernel: Kernel) -> Iterator[Check]:
    """Whether the IR is what this Argus makes of the design."""
    fits = found_or_failed("parameters", lambda: fitting(kernel, asked))
    yield fits if isinstance(fits, Check) else passed("parameters", "the kernel takes what the problem gives")
    yield of_sizes(kernel, asked.sizes)
    if claimed.design.knobs == claims.WRITTEN:
        yield unchecked("design", "written for the search: what is proved of it holds it to the problem")
        return
    found = found_or_failed("design", lambda: claims.design(asked, claimed.design.name))
    if isinstance(found, Check):
        yield found
        return
    yield same("design", claimed.design, found, f"`{found.name}` has these knobs and techniques")
    yield of_trace(found_or_failed("traced", lambda: asked.kernel(found.name)), kernel)


def _numbers(claimed: Numbers, kernel: Kernel, seeds: Sequence[int]) -> Iterator[Check]:
    """The runs that are named, again, and others."""
    said = evolve(claimed, runs=())
    yield same("tolerance", said, Numbers(REFERENCE, TOLERANCE, ()), "compared with float64, within rounding alone")
    known = _runs("runs", kernel, SEEDS)
    if isinstance(known, Check):
        yield known
        return
    alike = len(known) == len(claimed.runs) and all(map(agree, claimed.runs, known))
    why = f"{len(known)} runs give the errors that are claimed"
    yield passed("runs", why) if alike else failed("runs", f"{why}: they give others")
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


def _runs(name: str, kernel: Kernel, seeds: Sequence[int]) -> tuple[certificate.Run, ...] | Check:
    try:
        return found_or_failed(name, lambda: claims.runs(kernel, seeds))
    except ValueError as problem:
        return failed(name, f"the kernel is no product of matrices: {brief(problem)}")
