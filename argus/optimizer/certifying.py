"""A certificate checked from scratch: all is found again from the kernel's IR, and nothing that is claimed is believed.

What cannot be found again here, such as a time measured on a GPU, is told as not checked, never as right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.plain import MalformedError, read
from argus.core.pretty import pretty
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.core.walk import show
from argus.interp.search import assumed, holds
from argus.optimizer import certificate, claims
from argus.optimizer.certificate import Certificate, Numbers, Proof
from argus.optimizer.certifying_code import built, of_code, of_files
from argus.optimizer.certifying_times import of_baseline, of_time
from argus.optimizer.checked import Check, brief, failed, passed, same, unchecked
from argus.optimizer.drafts import fitting, short
from argus.optimizer.numbers import REFERENCE, SEEDS, TOLERANCE
from argus.optimizer.problem import Gemm, gemm_of
from argus.solvers.base import Solver
from argus.verify import verify

MOST_BYTES = 64 << 20
"""Of a delivered file that is read."""
_BLAMED = ("E1", "E2", "E4", "E5", "E9")
T = TypeVar("T")


@frozen
class Means:
    """solver: as for `verify`; no answer is taken from a cache. seeds: of inputs that nobody could have known."""

    solver: str | Solver | None = None
    budget: Budget = field(factory=Budget)
    seeds: Sequence[int] = (2, 3)


def certified(claimed: Certificate, folder: Path, means: Means = Means()) -> Iterator[Check]:
    """The checks, each told as it is done; after one without which others mean nothing there are no more.

    Raises ArgusError: E6xx without the solver, E302 without room to compile.
    """
    yield from of_files(claimed, folder)
    asked = _found("problem", lambda: gemm_of(claimed.problem.name, claimed.problem.target))
    if isinstance(asked, Check):
        yield asked
        return
    yield same("problem", claimed.problem, claims.problem(asked), "name, target and extents agree")
    kernel = _kernel(claimed, folder)
    if isinstance(kernel, Check):
        yield kernel
        return
    yield passed("ir", f"`{kernel.name}` is a well-formed kernel")
    yield from _design(claimed, asked, kernel)
    yield from _proof(claimed.proof, kernel, means, written=claimed.design.knobs == claims.WRITTEN)
    made = _found("code", lambda: built(kernel))
    if isinstance(made, Check):
        yield made
    else:
        yield from of_code(claimed, folder, kernel, asked, made)
    yield from _numbers(claimed.numbers, kernel, means.seeds)
    yield from of_time(claimed, asked, kernel, None if isinstance(made, Check) else made.compiled)
    yield of_baseline(claimed, asked)
    yield _versions(claimed)
    run = claimed.run
    yield unchecked("run", f"{run.name}, seed {run.seed}, {run.judged:,} candidates: its journal alone can tell")


def _found(name: str, find: Callable[[], T]) -> T | Check:
    """What is found, or a check that failed where what is claimed is to blame."""
    try:
        return find()
    except ArgusError as problem:
        if problem.diagnostic.code.startswith(_BLAMED):
            return failed(name, f"{problem.diagnostic.code}: {problem.diagnostic.message}")
        raise


def _kernel(claimed: Certificate, folder: Path) -> Kernel | Check:
    """The kernel of the IR, strictly parsed."""
    if "ir" not in claimed.files:
        return failed("ir", "the certificate names no file of the kernel's IR")
    path = folder / claimed.files["ir"].name
    try:
        if path.stat().st_size > MOST_BYTES:
            return failed("ir", f"{path.name} is larger than {MOST_BYTES:,} bytes")
        (kernel,) = read(json.loads(path.read_bytes()))
    except (OSError, MalformedError, ValueError, RecursionError) as problem:
        return failed("ir", f"{path.name} holds no kernel: {brief(problem)}")
    except ArgusError as problem:
        return failed("ir", f"{path.name} is ill-formed: {problem.diagnostic.code}: {problem.diagnostic.message}")
    return kernel if isinstance(kernel, Kernel) else failed("ir", f"{path.name} holds a program, expected a kernel")


def _design(claimed: Certificate, asked: Gemm, kernel: Kernel) -> Iterator[Check]:
    """Whether the IR is what this Argus makes of the design."""
    fits = _found("parameters", lambda: fitting(kernel, asked))
    yield fits if isinstance(fits, Check) else passed("parameters", "the kernel takes what the problem gives")
    condition = assumed(kernel)
    taken = holds(kernel, condition, asked.sizes) if not isinstance(fits, Check) else False
    told = f"the kernel assumes {show(condition)}, of extents {dict(asked.sizes)}"
    yield passed("admitted", told) if taken else failed("admitted", told)
    if claimed.design.knobs == claims.WRITTEN:
        yield unchecked("design", "written for the search: what is proved of it holds it to the problem")
        return
    found = _found("design", lambda: claims.design(asked, claimed.design.name))
    if isinstance(found, Check):
        yield found
        return
    yield same("design", claimed.design, found, f"`{found.name}` has these knobs and techniques")
    traced = _found("traced", lambda: asked.kernel(found.name))
    if isinstance(traced, Check):
        yield traced
    else:
        alike = pretty(traced) == pretty(kernel) and claims.emitted(traced) == claims.emitted(kernel)
        why = "the IR is what this Argus makes of the design"
        yield passed("traced", why) if alike else failed("traced", f"{why}: it is another kernel")


def _proof(claimed: Proof, kernel: Kernel, means: Means, *, written: bool) -> Iterator[Check]:
    report = _found("verdict", lambda: verify(kernel, solver=means.solver, budget=means.budget))
    if isinstance(report, Check):
        yield report
        return
    found = claims.proof(report)
    if found.verdict != "proved" or found.uncovered:
        left = f", nothing is stated of {', '.join(found.uncovered)}" if found.uncovered else ""
        yield failed("verdict", f"{found.solver} says {found.verdict}{left}, claimed {claimed.verdict}")
    else:
        yield same("verdict", claimed.verdict, found.verdict, f"{found.solver} proves it, without a cached answer")
    if isinstance(report.verdict, Proved):
        left = short(report.verdict, kernel, written=written)
        yield failed("product", left) if left else passed("product", "what is proved of C is what the problem asks for")
    yield same("obligations", claimed.obligations, found.obligations, f"{found.obligations:,} obligations")
    yield _listed("invariants", claimed.invariants, found.invariants)
    yield _listed("assumptions", claimed.assumptions, found.assumptions)
    yield _listed("results", claimed.results, found.results)
    yield _listed("uncovered", claimed.uncovered, found.uncovered)
    if claimed.solver == found.solver:
        yield passed("solver", f"claimed and used: {found.solver}")
    else:
        yield unchecked("solver", f"claimed {claimed.solver}, used {found.solver}; name it with --solver")


def _listed(name: str, claimed: Sequence[object], found: Sequence[object]) -> Check:
    """Two lists, told by what only one of them has."""
    if claimed == found:
        return passed(name, f"{len(found):,} claimed and found")
    lacking = [brief(each) for each in found if each not in claimed]
    more = [brief(each) for each in claimed if each not in found]
    parts = [f"not claimed: {'; '.join(lacking)}"] if lacking else []
    parts += [f"claimed but not found: {'; '.join(more)}"] if more else []
    return failed(name, ", ".join(parts) or "in another order, or more than once")


def _numbers(claimed: Numbers, kernel: Kernel, seeds: Sequence[int]) -> Iterator[Check]:
    """The runs that are named, again, and others."""
    said = evolve(claimed, runs=())
    yield same("tolerance", said, Numbers(REFERENCE, TOLERANCE, ()), "compared with float64, within rounding alone")
    known = _runs("runs", kernel, SEEDS)
    if isinstance(known, Check):
        yield known
        return
    alike = len(known) == len(claimed.runs) and all(map(_agree, claimed.runs, known))
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
        return _found(name, lambda: claims.runs(kernel, seeds))
    except ValueError as problem:
        return failed(name, f"the kernel is no product of matrices: {brief(problem)}")


def _agree(claimed: certificate.Run, found: certificate.Run) -> bool:
    """float64 sums of NumPy may differ in their last digits from machine to machine."""
    exact = (claimed.shape, claimed.seed, claimed.elements, claimed.outside)
    numbers = ((claimed.worst, found.worst), (claimed.allowed, found.allowed))
    same_runs = exact == (found.shape, found.seed, found.elements, found.outside)
    return same_runs and all(abs(one - other) <= 1e-6 * abs(other) for one, other in numbers)


def _versions(claimed: Certificate) -> Check:
    here = claims.versions()
    differ = [
        f"{name} {claimed.versions.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in sorted({*claimed.versions, *here})
        if claimed.versions.get(name) != here.get(name)
    ]
    if differ:
        return unchecked("versions", f"made with others: {brief('; '.join(differ))}")
    return passed("versions", ", ".join(f"{name} {found}" for name, found in here.items()))
