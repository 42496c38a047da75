"""What a search ends with: a folder with the best design's kernel, a loader, and a certificate for others to check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import frozen

from argus.build import build
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.plain import read
from argus.core.verdict import Report
from argus.emit.artifact import Artifact
from argus.emit.toolchain import write_files
from argus.optimizer import certificate, claims
from argus.optimizer.certificate import Certificate, File, Numbers, Origin, Role, text_of
from argus.optimizer.drafts import kernel_of
from argus.optimizer.judgement import Judgement
from argus.optimizer.loading import loader
from argus.optimizer.numbers import REFERENCE, TOLERANCE
from argus.optimizer.problem import Gemm, Problem
from argus.optimizer.reward import resources
from argus.optimizer.run import Found
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.verify import verify

IR, LOADER = "kernel.json", "load.py"


@frozen
class Delivery:
    """A folder, what was written there, and what is claimed of it."""

    folder: Path
    certificate: Certificate
    artifact: Artifact


def delivered(found: Found, folder: Path, *, device: str = "", solver: str | Solver | None = None) -> Delivery:
    """Write the best design of a run into a folder: source, code object, launch description, kernel.json, load.py and
    certificate.json. The kernel is verified, interpreted and compiled for it once more.

    device: the name of the GPU that times were measured on. solver: as for `verify`.
    Raises ArgusError: E932 where no candidate has passed, E302 if the folder cannot be written, E303 and E304 as
    `build` does, E903 for a kernel file.
    """
    best = found.best
    if best is None or best.microseconds is None:
        message = f"run {found.run} has no design to deliver: no candidate has passed the gate"
        raise ArgusError(Diagnostic("E932", "error", message, help=f"go on with --resume {found.run}"))
    text, asked = found.text, product(found.problem)
    document = claims.document(kernel_of(text, asked) if text else asked.kernel(best.name))
    kernel = cast(Kernel, read(document)[0])
    report = verify(kernel, solver=solver, cache=Cache())
    artifact = build(kernel, directory=folder, lines=False)  # which name the folder that they were made in
    script = loader(kernel, artifact.description.stem, dict(found.problem.sizes))
    texts: dict[str, str | bytes] = {IR: json.dumps(document) + "\n", LOADER: script}
    ir, load = write_files(texts, folder, kernel.name)
    places: dict[Role, Path | None] = {
        "source": artifact.source,
        "code": artifact.code,
        "description": artifact.description,
        "ir": ir,
        "loader": load,
        "assembly": artifact.assembly,
    }
    listed: dict[Role, File] = {role: claims.file(place) for role, place in places.items() if place is not None}
    claimed = _claimed(found, asked, best, report, kernel, listed, resources(artifact), device)
    write_files({certificate.NAME: text_of(claimed)}, folder, kernel.name)
    return Delivery(folder, claimed, artifact)


def product(asked: Problem) -> Gemm:
    """The problem, whose designs are delivered. Raises ArgusError (E903) for a file of the user's own."""
    if isinstance(asked, Gemm):
        return asked
    message = f"`{asked}` cannot be delivered: certificates speak of products alone"
    raise ArgusError(Diagnostic("E903", "error", message, help="leave --out away"))


def _claimed(
    found: Found,
    asked: Gemm,
    best: Judgement,
    report: Report,
    kernel: Kernel,
    files: Mapping[Role, File],
    used: Mapping[str, float],
    device: str,
) -> Certificate:
    assert best.microseconds is not None
    return Certificate(
        certificate.SCHEMA,
        claims.problem(asked),
        claims.design(asked, best.name, found.text),
        claims.proof(report),
        Numbers(REFERENCE, TOLERANCE, claims.runs(kernel)),
        files,
        used,
        claims.time(asked, best.microseconds, best.reward, device if best.reward == "measured" else ""),
        claims.baseline(asked, _timed(found, best)),
        Origin(found.run, found.seed, len(found.judged), found.reason),
        claims.COMPILERS[asked.target],
        claims.versions(),
    )


def _timed(found: Found, best: Judgement) -> Mapping[str, float]:
    """Times of the run's designs that are comparable with that of the best one."""
    return {
        each.name: each.microseconds
        for each in found.judged
        if each.microseconds is not None and each.reward == best.reward
    }
