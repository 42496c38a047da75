"""What a certificate claims of any kernel: its proof, its files, its time. Delivery and check compute it alike."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import cast

from argus.core.ir import Kernel
from argus.core.serde import write
from argus.core.verdict import Proved, Report
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_text
from argus.report.summary import assumptions, numbered, results, verdict_word
from argus.search.certificates.certificate import File, Invariant, Proof, Time
from argus.search.evaluation.judgement import Reward
from argus.search.problems.problem import Problem

_SOURCES = PurePath(__file__).parents[3]
"""Where the package lies: no path of a machine gets into what is delivered."""
IR, LOADER = "kernel.json", "load.py"
COMPILERS: Mapping[str, str] = {"sm_90a": "nvidia-cuda-nvrtc", "gfx942": "ziglang"}
_JUDGES = ("argus", "z3-solver", "cvc5", "numpy", *COMPILERS.values())


def document(kernel: Kernel) -> dict[str, object]:
    """A kernel as plain data, whose lines are of files named from where the package lies."""
    data = write([kernel])
    for row in cast("list[list[object]]", data["rows"]):
        if row[0] == "Frame":
            row[1] = _relative(str(row[1]))
    return data


def _relative(file: str) -> str:
    path = PurePath(file)
    if not path.is_absolute():
        return file
    return path.relative_to(_SOURCES).as_posix() if path.is_relative_to(_SOURCES) else path.name


def emitted(kernel: Kernel) -> str:
    """The source of a kernel, for its target. Raises ArgusError (E501)."""
    return cuda_text(kernel).text if kernel.target.name == "sm_90a" else hip_text(kernel)


WRITTEN: Mapping[str, str] = {"kind": "text"}
"""The knobs of a kernel that somebody wrote: it has none."""


def proof(report: Report) -> Proof:
    """Of invariants those that apply to the kernel."""
    coverage = dict(numbered(report.verdict.coverage)) if isinstance(report.verdict, Proved) else {}
    listed = tuple(
        Invariant(each.invariant, each.title, each.standing, each.obligations, coverage.get(each.invariant, 0))
        for each in report.findings
        if each.standing != "not applicable"
    )
    verdict = report.verdict
    told, obligations = assumptions(verdict), sum(each.obligations for each in report.findings)
    return Proof(verdict_word(verdict), report.solver, obligations, listed, told, results(verdict), report.uncovered)


def file(path: Path) -> File:
    """Raises OSError."""
    data = path.read_bytes()
    return File(path.name, len(data), sha256(data).hexdigest())


def time(asked: Problem, microseconds: float, reward: Reward, device: str) -> Time:
    bounds = asked.bounds
    return Time(reward, microseconds, bounds.light, bounds.light / microseconds, bounds.bottleneck, device)


def versions() -> dict[str, str]:
    """Of what judges and compiles here."""
    return {name: found for name in _JUDGES if (found := _version(name))}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
