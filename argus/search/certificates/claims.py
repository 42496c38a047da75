"""Computes the claims common to all certificates: proof, files, time. Shared by delivery and check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import cast

from argus.core.ir import Kernel
from argus.core.serde import write
from argus.core.verdict import Finding, ProgramReport, Proved, Report, Standing
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import compiled_texts
from argus.report.summary import assumptions, numbered, results, verdict_word
from argus.search.certificates.certificate import File, Invariant, Proof, Time
from argus.search.evaluation.judgement import Reward
from argus.search.problems.problem import Problem
from argus.search.problems.traced import Traced

_SOURCES = PurePath(__file__).parents[3]
"""The folder of the package; delivered files must not contain absolute paths."""
IR, LOADER = "kernel.json", "load.py"
COMPILERS: Mapping[str, str] = {"sm_90a": "nvidia-cuda-nvrtc", "gfx942": "ziglang"}
_PACKAGES = ("argus", "z3-solver", "cvc5", "numpy", *COMPILERS.values())


def kernel_document(kernel: Traced) -> dict[str, object]:
    """A kernel or program as JSON data, with source paths relative to the package's folder."""
    data = write([kernel])
    for row in cast("list[list[object]]", data["rows"]):
        if row[0] == "Frame":
            row[1] = _relative(str(row[1]))
    return data


def _relative(file_entry: str) -> str:
    path = PurePath(file_entry)
    if not path.is_absolute():
        return file_entry
    return path.relative_to(_SOURCES).as_posix() if path.is_relative_to(_SOURCES) else path.name


def emit_sources(kernel: Kernel) -> tuple[str, ...]:
    """The sources of a kernel that a build chooses from. Raises ArgusError (E501)."""
    return (cuda_text(kernel).text,) if kernel.target.name == "sm_90a" else compiled_texts(kernel)


TEXT_KNOBS: Mapping[str, str] = {"kind": "text"}
"""The knobs of a kernel that a model wrote."""


def proof(report: Report | ProgramReport) -> Proof:
    """The claims about a proof, with the applicable invariants; of a program those of all launches together."""
    reports = report.launches if isinstance(report, ProgramReport) else (report,)
    verdict = report.verdict
    coverage = dict(numbered(verdict.coverage)) if isinstance(verdict, Proved) else {}
    applicable = [each for one in reports for each in one.findings if each.standing != "not applicable"]
    order = dict.fromkeys(each.invariant for one in reports for each in one.findings)
    alike = {name: [each for each in applicable if each.invariant == name] for name in order}
    listed = tuple(
        Invariant(name, each[0].title, _worst(each), sum(one.obligations for one in each), coverage.get(name, 0))
        for name, each in alike.items()
        if each
    )
    obligations = sum(each.obligations for one in reports for each in one.findings)
    uncovered = tuple(dict.fromkeys(name for one in reports for name in one.uncovered))
    found = verdict_word(verdict), reports[0].solver, obligations, listed
    return Proof(*found, assumptions(verdict), results(verdict), uncovered)


def _worst(findings: Sequence[Finding]) -> Standing:
    """What is said of an invariant in a program, where its launches differ."""
    found = {each.standing for each in findings}
    order: tuple[Standing, ...] = ("refuted", "unknown", "not built yet", "proved")
    return next(each for each in order if each in found)


def file_entry(path: Path, folder: str = "") -> File:
    """Name, size and digest of a file. folder: of a launch, which its name then has. Raises OSError."""
    data = path.read_bytes()
    return File(f"{folder}/{path.name}" if folder else path.name, len(data), sha256(data).hexdigest())


def time(asked: Problem, microseconds: float, reward: Reward, device: str) -> Time:
    bounds = asked.bounds
    return Time(reward, microseconds, bounds.light, bounds.light / microseconds, bounds.bottleneck, device)


def versions() -> dict[str, str]:
    """Versions of the installed packages that prove and compile."""
    return {name: found for name in _PACKAGES if (found := _version(name))}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
