"""Delivers the best design of a search: a folder with its kernel, a loader script and a certificate."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import assert_never

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.serde import read
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.build_program import BuiltProgram, build_program
from argus.emit.hip.toolchain import write_files
from argus.search.certificates import certificate, claims, family_claims, file_claims, product_claims
from argus.search.certificates.certificate import (
    Baseline,
    Certificate,
    Design,
    File,
    Numbers,
    Origin,
    Role,
    certificate_text,
)
from argus.search.certificates.load_script import family_loader, file_loader, loader
from argus.search.certificates.subject import single
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.numerics import SEEDS
from argus.search.evaluation.reward import resources_of
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile, digest_of
from argus.search.problems.llm_kernels import trace_candidate
from argus.search.problems.problem import Gemm
from argus.search.problems.traced import Traced
from argus.search.run import SearchResult
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.verifier.api import verify


@frozen
class Delivery:
    """A delivered folder with its certificate and build artifact."""

    folder: Path
    certificate: Certificate
    artifact: Artifact | BuiltProgram


def deliver(found: SearchResult, folder: Path, *, device: str = "", solver: str | Solver | None = None) -> Delivery:
    """Write the best design of a run to a folder: source, code object, launch description, kernel.json, load.py,
    certificate.json, and the user's kernel file if any. Verifies, interprets and compiles the kernel again.

    device: name of the GPU that measured the times. solver: as for `verify`.
    Raises ArgusError: E932 if no candidate has passed, E302 if the folder cannot be written, E303 and E304 as `build`,
    E903 if the kernel file has changed since the search.
    """
    best, asked = found.best, found.problem
    if best is None or best.microseconds is None:
        message = f"run {found.run} has no design to deliver: no candidate has passed the gate"
        raise ArgusError(Diagnostic("E932", "error", message, help=f"continue with --resume {found.run}"))
    document = claims.kernel_document(traced_best(found, best))
    (kernel,) = read(document)
    said = _claims(found, best)
    report = verify(kernel, solver=solver, cache=Cache())
    built = built_into(kernel, folder)
    script = said.script(kernel, built.description.stem, asked.sizes)
    texts: dict[str, str | bytes] = {claims.IR: json.dumps(document) + "\n", claims.LOADER: script, **said.files}
    written = write_files(texts, folder, kernel.name)
    places: dict[Role, Path | None] = {"description": built.description}
    if isinstance(built, Artifact):
        places = _files_of(built)
    places |= {"ir": written[0], "loader": written[1], "problem": next(iter(written[2:]), None)}
    listed: dict[Role, File] = {role: claims.file_entry(place) for role, place in places.items() if place is not None}
    numbers = said.numbers(kernel)
    claimed = Certificate(
        certificate.SCHEMA,
        said.problem,
        said.design,
        claims.proof(report),
        numbers,
        listed,
        resources_of(built),
        evolve(
            claims.time(asked, best.microseconds, best.reward, device if best.reward == "measured" else ""),
            median=best.name in found.settled,
        ),
        said.baseline,
        Origin(found.run, found.seed, len(found.judged), found.reason),
        claims.COMPILERS[asked.target],
        claims.versions(),
        _launches(built),
    )
    write_files({certificate.NAME: certificate_text(claimed)}, folder, kernel.name)
    return Delivery(folder, claimed, built)


def traced_best(found: SearchResult, best: Judgement) -> Traced:
    """The best kernel or program."""
    asked = found.problem
    return trace_candidate(found.text, asked) if found.text else asked.kernel(best.name)


def built_into(traced: Traced, folder: Path) -> Artifact | BuiltProgram:
    """Compiled into the folder, without line directives, which would contain its path."""
    if isinstance(traced, Kernel):
        return build(traced, directory=folder, lines=False)
    return build_program(traced, folder, lines=False)


def files_of_kernel(built: Artifact | BuiltProgram) -> tuple[Path, ...]:
    """The files of a kernel, or of all launches of a program and its description."""
    if isinstance(built, BuiltProgram):
        return (built.description, *(path for each in built.kernels for path in files_of_kernel(each)))
    return tuple(path for path in _files_of(built).values() if path is not None)


def _files_of(artifact: Artifact) -> dict[Role, Path | None]:
    return {
        "source": artifact.source,
        "code": artifact.code,
        "description": artifact.description,
        "assembly": artifact.assembly,
    }


def _launches(built: Artifact | BuiltProgram) -> tuple[dict[Role, File], ...]:
    """The files of each launch of a program."""
    if not isinstance(built, BuiltProgram):
        return ()
    return tuple(
        {
            role: claims.file_entry(place, each.description.parent.name)
            for role, place in _files_of(each).items()
            if place is not None
        }
        for each in built.kernels
    )


@frozen
class _ProblemClaims:
    """Claims and files that depend on the kind of problem. files: further delivered files by name."""

    problem: certificate.Problem
    design: Design
    baseline: Baseline
    numbers: Callable[[Traced], Numbers]
    script: Callable[[Traced, str, Mapping[str, int]], str]
    files: Mapping[str, str | bytes]


def _claims(found: SearchResult, best: Judgement) -> _ProblemClaims:
    match found.problem:
        case Gemm() as asked:
            return _product_claims(asked, found, best)
        case FamilyProblem() as asked:
            return _family_claims(asked, found, best)
        case KernelFile() as asked:
            return _file_claims(asked, found, best)
        case _:
            assert_never(found.problem)


def _family_claims(asked: FamilyProblem, found: SearchResult, best: Judgement) -> _ProblemClaims:
    return _ProblemClaims(
        family_claims.problem(asked),
        family_claims.design(asked, best.name, found.text),
        family_claims.baseline(asked, _comparable_times(found, best)),
        lambda kernel: family_claims.numbers(family_claims.runs(kernel, asked, SEEDS)),
        lambda kernel, stem, _sizes: family_loader(kernel, stem, asked),
        {},
    )


def _product_claims(asked: Gemm, found: SearchResult, best: Judgement) -> _ProblemClaims:
    return _ProblemClaims(
        product_claims.problem(asked),
        product_claims.design(asked, best.name, found.text),
        product_claims.baseline(asked, _comparable_times(found, best)),
        lambda kernel: product_claims.numbers(product_claims.runs(single(kernel))),
        lambda kernel, stem, sizes: loader(single(kernel), stem, sizes),
        {},
    )


def _file_claims(asked: KernelFile, found: SearchResult, best: Judgement) -> _ProblemClaims:
    """Raises ArgusError (E903) if the file has changed."""
    data = Path(asked.path).read_bytes()
    if digest_of(data) != asked.digest:
        message = f"`{asked.path}` has changed since it was searched"
        raise ArgusError(Diagnostic("E903", "error", message, help="restore the file, or start a new run"))
    variants = asked.variants
    written = Design(best.name, dict(claims.TEXT_KNOBS), ())
    return _ProblemClaims(
        file_claims.problem(asked),
        written if found.text else file_claims.design(variants[best.name]),
        file_claims.baseline(variants.values(), _comparable_times(found, best)),
        lambda kernel: file_claims.numbers(file_claims.runs(single(kernel), asked)),
        lambda kernel, stem, sizes: file_loader(single(kernel), stem, sizes, file_claims.PROBLEM),
        {file_claims.PROBLEM: data},
    )


def _comparable_times(found: SearchResult, best: Judgement) -> Mapping[str, float]:
    """Times of the run's designs, measured or predicted like that of the best one: medians of a last round, or not."""
    if best.name in found.settled:
        return found.settled
    return {
        each.name: each.microseconds
        for each in found.judged
        if each.microseconds is not None and each.reward == best.reward
    }
