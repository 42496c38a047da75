"""What a certificate says of a design, found by the readings of Argus: as it is made, and as it is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import cast

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.serde import write
from argus.core.verdict import Proved, Report
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_text
from argus.ops.choice import select
from argus.report.summary import assumptions, numbered, results, verdict_word
from argus.search.certificates import certificate
from argus.search.certificates.certificate import Baseline, Design, File, Invariant, Proof, Time
from argus.search.designs.space import describe, situation
from argus.search.evaluation.judgement import Reward
from argus.search.evaluation.numerics import SEEDS, multiplied, shapes
from argus.search.problems.problem import Gemm, Problem

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


def problem(asked: Gemm) -> certificate.Problem:
    return certificate.Problem(str(asked), asked.target, dict(asked.sizes))


WRITTEN: Mapping[str, str] = {"kind": "text"}
"""The knobs of a kernel that somebody wrote: it has none."""


def design(asked: Gemm, name: str, text: str = "") -> Design:
    """text: of a kernel that somebody wrote. Raises ArgusError (E903) where no design is called that."""
    if text:
        return Design(name, dict(WRITTEN), ())
    found = describe(asked, name, asked.config(name))
    knobs = {knob: str(value) for knob, value in found.knobs}
    return Design(name, knobs, tuple(str(step) for step in found.techniques))


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


def runs(kernel: Kernel, seeds: Sequence[int] = SEEDS) -> tuple[certificate.Run, ...]:
    """In the interpreter, each beside the float64 reference. Raises ArgusError (E401, E402, E501)."""
    return tuple(_run(kernel, shape, seed) for seed in seeds for shape in shapes(kernel, seed))


def _run(kernel: Kernel, shape: tuple[int, int, int], seed: int) -> certificate.Run:
    found = multiplied(kernel, shape, seed)
    return certificate.Run(shape, seed, found.elements, found.outside, found.worst, found.allowed)


def file(path: Path) -> File:
    """Raises OSError."""
    data = path.read_bytes()
    return File(path.name, len(data), sha256(data).hexdigest())


def time(asked: Problem, microseconds: float, reward: Reward, device: str) -> Time:
    bounds = asked.bounds
    return Time(reward, microseconds, bounds.light, bounds.light / microseconds, bounds.bottleneck, device)


def baseline(asked: Gemm, times: Mapping[str, float]) -> Baseline:
    """What one would launch without a search: what `select` names, else the first design. times: that are known."""
    try:
        name, why = select(asked.m, asked.n, asked.k, asked.dtype, asked.target), "what `select` names without a search"
    except ArgusError:
        name, why = situation(asked).options[0].name, "the first design of the space"
    return Baseline(name, why, times.get(name))


def versions() -> dict[str, str]:
    """Of what judges and compiles here."""
    return {name: found for name in _JUDGES if (found := _version(name))}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
