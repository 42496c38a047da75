"""What a search ends with: a folder with the best design's kernel, a loader, and a certificate for others to check."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.serde import read
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.hip.toolchain import write_files
from argus.search.certificates import certificate, claims, file_claims, product_claims
from argus.search.certificates.certificate import Baseline, Certificate, Design, File, Numbers, Origin, Role, text_of
from argus.search.certificates.load_script import loader, loader_of_file
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.reward import resources
from argus.search.problems.kernel_file import KernelFile, digest_of
from argus.search.problems.llm_kernels import trace_text
from argus.search.problems.problem import Gemm
from argus.search.run import SearchResult
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.verifier.kernel import verify


@frozen
class Delivery:
    """A folder, what was written there, and what is claimed of it."""

    folder: Path
    certificate: Certificate
    artifact: Artifact


def delivered(found: SearchResult, folder: Path, *, device: str = "", solver: str | Solver | None = None) -> Delivery:
    """Write the best design of a run into a folder: source, code object, launch description, kernel.json, load.py and
    certificate.json, and of a kernel file that file. The kernel is verified, interpreted and compiled for it once more.

    device: the name of the GPU that times were measured on. solver: as for `verify`.
    Raises ArgusError: E932 where no candidate has passed, E302 if the folder cannot be written, E303 and E304 as
    `build` does, E903 for a kernel file that has changed since.
    """
    best, asked = found.best, found.problem
    if best is None or best.microseconds is None:
        message = f"run {found.run} has no design to deliver: no candidate has passed the gate"
        raise ArgusError(Diagnostic("E932", "error", message, help=f"go on with --resume {found.run}"))
    text = found.text
    document = claims.document(trace_text(text, asked) if text else asked.kernel(best.name))
    kernel = cast(Kernel, read(document)[0])
    said = _of_product(asked, found, best) if isinstance(asked, Gemm) else _of_file(asked, found, best)
    report = verify(kernel, solver=solver, cache=Cache())
    artifact = build(kernel, directory=folder, lines=False)  # which name the folder that they were made in
    script = said.script(kernel, artifact.description.stem, asked.sizes)
    texts: dict[str, str | bytes] = {claims.IR: json.dumps(document) + "\n", claims.LOADER: script, **said.files}
    written = write_files(texts, folder, kernel.name)
    places: dict[Role, Path | None] = {
        "source": artifact.source,
        "code": artifact.code,
        "description": artifact.description,
        "ir": written[0],
        "loader": written[1],
        "assembly": artifact.assembly,
        "problem": next(iter(written[2:]), None),
    }
    listed: dict[Role, File] = {role: claims.file(place) for role, place in places.items() if place is not None}
    numbers = said.numbers(kernel)
    claimed = Certificate(
        certificate.SCHEMA,
        said.problem,
        said.design,
        claims.proof(report),
        numbers,
        listed,
        resources(artifact),
        claims.time(asked, best.microseconds, best.reward, device if best.reward == "measured" else ""),
        said.baseline,
        Origin(found.run, found.seed, len(found.judged), found.reason),
        claims.COMPILERS[asked.target],
        claims.versions(),
    )
    write_files({certificate.NAME: text_of(claimed)}, folder, kernel.name)
    return Delivery(folder, claimed, artifact)


@frozen
class _Said:
    """What is said of a design beside what any kernel tells of itself. files: that lie beside it, by name."""

    problem: certificate.Problem
    design: Design
    baseline: Baseline
    numbers: Callable[[Kernel], Numbers]
    script: Callable[[Kernel, str, Mapping[str, int]], str]
    files: Mapping[str, str | bytes]


def _of_product(asked: Gemm, found: SearchResult, best: Judgement) -> _Said:
    return _Said(
        product_claims.problem(asked),
        product_claims.design(asked, best.name, found.text),
        product_claims.baseline(asked, _timed(found, best)),
        lambda kernel: product_claims.numbers(product_claims.runs(kernel)),
        loader,
        {},
    )


def _of_file(asked: KernelFile, found: SearchResult, best: Judgement) -> _Said:
    """Raises ArgusError (E903) for a file that is another by now."""
    data = Path(asked.path).read_bytes()
    if digest_of(data) != asked.digest:
        message = f"`{asked.path}` has changed since it was searched"
        raise ArgusError(Diagnostic("E903", "error", message, help="restore the file, or begin a new run"))
    variants = asked.variants
    written = Design(best.name, dict(claims.WRITTEN), ())
    return _Said(
        file_claims.problem(asked),
        written if found.text else file_claims.design(variants[best.name]),
        file_claims.baseline(variants.values(), _timed(found, best)),
        lambda kernel: file_claims.numbers(file_claims.runs(kernel, asked)),
        lambda kernel, stem, sizes: loader_of_file(kernel, stem, sizes, file_claims.PROBLEM),
        {file_claims.PROBLEM: data},
    )


def _timed(found: SearchResult, best: Judgement) -> Mapping[str, float]:
    """Times of the run's designs that are comparable with that of the best one."""
    return {
        each.name: each.microseconds
        for each in found.judged
        if each.microseconds is not None and each.reward == best.reward
    }
