"""`argus doctor`: shows what is installed, what is missing, and how to fix it.

It starts no program and writes nothing except an empty cache.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from attrs import asdict

from argus.cli.checks import Check, version_of
from argus.cli.doctor_amd import amd_checks
from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError
from argus.core.query import Query
from argus.emit.cuda.nvdisasm import INSTALL, disassembler
from argus.emit.cuda.nvrtc import compiler_present as cuda_compiler_present
from argus.emit.hip.toolchain import compiler_present
from argus.report.command_result import Outcome
from argus.solvers import registry
from argus.solvers.cache import Cache

SCHEMA = "argus.doctor/1"


def examine(root: Path = Path("/")) -> tuple[Check, ...]:
    """Check everything that Argus can use on this machine. root: the folder with `proc` and `dev`."""
    return (*_packages(), *_solvers(), _compiler(), _cuda_compiler(), _disassembler(), *_gpus(root), _cache())


def _packages() -> Iterator[Check]:
    yield Check("packages", "python", "good", platform.python_version())
    for name in ("argus", "attrs", "numpy", "ml_dtypes"):
        yield Check("packages", name, "good", version_of(name) or "used from its source folder")
    for name, use in (("torch", "`argus.matmul`, which takes its tensors"), ("anthropic", "a planner, not built yet")):
        found = version_of(name)
        absent = f"not installed: optional, for {use}"
        yield Check("packages", name, "good" if found else "absent", found or absent)


_DISTRIBUTIONS = {"z3": "z3-solver", "cvc5": "cvc5"}


def _solvers() -> Iterator[Check]:
    names = registry.available()
    for name in sorted({*names, *_DISTRIBUTIONS}):
        yield _solver(name)


def _solver(name: str) -> Check:
    loses = f"`--solver {name}`; proofs by other solvers are not affected"
    try:
        registry.get(name)
    except ArgusError as problem:
        repair = f"pip install {_DISTRIBUTIONS[name]}" if name in _DISTRIBUTIONS else problem.diagnostic.help
        return Check("solvers", name, "degraded", problem.diagnostic.message, loses, repair)
    found = version_of(_DISTRIBUTIONS[name]) if name in _DISTRIBUTIONS else None
    return Check("solvers", name, "good", found or "built in, or a combination of the others")


def _compiler() -> Check:
    if compiler_present():
        return Check("compilers", "gfx942", "good", f"ziglang {version_of('ziglang') or 'of unknown version'}")
    loses = "`argus build --target gfx942`; verification and interpretation work without it"
    return Check("compilers", "gfx942", "degraded", "ziglang is not installed", loses, "pip install 'argus[gfx942]'")


def _cuda_compiler() -> Check:
    if cuda_compiler_present():
        found = version_of("nvidia-cuda-nvrtc") or "of unknown version"
        return Check("compilers", "sm_90a", "good", f"NVRTC {found}")
    loses = "`argus build --target sm_90a`; verification and interpretation work without it"
    return Check("compilers", "sm_90a", "degraded", "NVRTC is not installed", loses, "pip install 'argus[sm90a]'")


def _disassembler() -> Check:
    if disassembler() is not None:
        found = version_of("nvidia-cuda-nvdisasm") or "of unknown version"
        return Check("compilers", "sm_90a disassembler", "good", f"nvdisasm {found}")
    loses = "what `argus build` reads from sm_90a code; it compiles without it"
    return Check("compilers", "sm_90a disassembler", "degraded", "nvdisasm is not installed", loses, INSTALL)


def _gpus(root: Path) -> Iterator[Check]:
    nvidia = sorted((root / "proc/driver/nvidia/gpus").glob("*"))
    amd = tuple(amd_checks(root))
    if nvidia:
        yield Check("GPUs", "NVIDIA", "good", f"{len(nvidia)} known to the driver; `argus run` uses the first")
    yield from amd
    if not nvidia and not amd:
        yield Check("GPUs", "any", "absent", "none: a GPU is optional, kernels run in the interpreter")


def _cache() -> Check:
    cache = Cache()
    cache.get(Query(()), "")
    cache.close()
    if not cache.problem:
        return Check("cache", "answers", "good", str(cache.path))
    repair = "make the folder writable, or set ARGUS_CACHE_DIR to one that is"
    return Check("cache", "answers", "degraded", cache.problem, "reuse of answers between runs", repair)


def table(checks: Sequence[Check]) -> Iterator[str]:
    """The checks by group, then the lost features and the repairs of degraded ones."""
    width = max(len(check.name) for check in checks)
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            yield group
        mark = {"good": "ok", "absent": "-", "degraded": "!"}[check.state]
        yield f"  {mark:<3} {check.name:<{width}}  {check.found}"
    degraded = [check for check in checks if check.state == "degraded"]
    yield f"degraded: {len(degraded) or 'nothing'}"
    for check in degraded:
        yield f"  {check.name}: without it there is no {check.loses}"
        yield f"  {'':<{len(check.name)}}  repair: {check.repair}"


def as_data(checks: Sequence[Check]) -> dict[str, object]:
    """The checks in the schema `argus.doctor/1`."""
    return {"schema": SCHEMA, "checks": [asdict(check) for check in checks]}


@click.command(name="doctor")
@json_option
def doctor(as_json: bool) -> Outcome:
    """Show what is installed, what is missing, and how to fix it."""
    checks = examine()
    if not as_json:
        Screen().lines(table(checks))
    return Outcome(0, as_data(checks))
