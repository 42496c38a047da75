"""Steps of checking a certificate that are the same whatever the problem is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.serde import MalformedError, read
from argus.core.verdict import Proved
from argus.core.walk import show
from argus.interp.search.search import assumed, holds
from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Certificate, Proof
from argus.search.certificates.check_result import Check, brief, failed, passed, same, unchecked
from argus.solvers.base import Solver
from argus.verifier.kernel import verify

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


def found_or_failed(name: str, find: Callable[[], T]) -> T | Check:
    """What is found, or a check that failed where what is claimed is to blame."""
    try:
        return find()
    except ArgusError as problem:
        if problem.diagnostic.code.startswith(_BLAMED):
            return failed(name, f"{problem.diagnostic.code}: {problem.diagnostic.message}")
        raise


def kernel_of(claimed: Certificate, folder: Path) -> Kernel | Check:
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


def of_sizes(kernel: Kernel, sizes: Mapping[str, int]) -> Check:
    """Whether the kernel takes the problem's extents."""
    condition = assumed(kernel)
    told = f"the kernel assumes {show(condition)}, of extents {dict(sizes)}"
    known = {symbol.name for symbol in kernel.sizes} <= sizes.keys()
    return passed("admitted", told) if known and holds(kernel, condition, sizes) else failed("admitted", told)


def of_trace(traced: Kernel | Check, kernel: Kernel) -> Check:
    """Whether the IR is what this Argus makes of a design."""
    if isinstance(traced, Check):
        return traced
    alike = pretty(traced) == pretty(kernel) and claims.emitted(traced) == claims.emitted(kernel)
    why = "the IR is what this Argus makes of the design"
    return passed("traced", why) if alike else failed("traced", f"{why}: it is another kernel")


def of_proof(claimed: Proof, kernel: Kernel, means: Means, short: Callable[[Proved], str] | None) -> Iterator[Check]:
    """short: what a proof leaves open of the problem, empty if nothing; None where nobody knows."""
    report = found_or_failed("verdict", lambda: verify(kernel, solver=means.solver, budget=means.budget))
    if isinstance(report, Check):
        yield report
        return
    found = claims.proof(report)
    if found.verdict != "proved" or found.uncovered:
        left = f", nothing is stated of {', '.join(found.uncovered)}" if found.uncovered else ""
        yield failed("verdict", f"{found.solver} says {found.verdict}{left}, claimed {claimed.verdict}")
    else:
        yield same("verdict", claimed.verdict, found.verdict, f"{found.solver} proves it, without a cached answer")
    if isinstance(report.verdict, Proved) and short is not None:
        left = short(report.verdict)
        yield failed("product", left) if left else passed("product", "what is proved of C is what the problem asks for")
    yield same("obligations", claimed.obligations, found.obligations, f"{found.obligations:,} obligations")
    yield listed("invariants", claimed.invariants, found.invariants)
    yield listed("assumptions", claimed.assumptions, found.assumptions)
    yield listed("results", claimed.results, found.results)
    yield listed("uncovered", claimed.uncovered, found.uncovered)
    if claimed.solver == found.solver:
        yield passed("solver", f"claimed and used: {found.solver}")
    else:
        yield unchecked("solver", f"claimed {claimed.solver}, used {found.solver}; name it with --solver")


def listed(name: str, claimed: Sequence[object], found: Sequence[object]) -> Check:
    """Two lists, told by what only one of them has."""
    if claimed == found:
        return passed(name, f"{len(found):,} claimed and found")
    lacking = [brief(each) for each in found if each not in claimed]
    more = [brief(each) for each in claimed if each not in found]
    parts = [f"not claimed: {'; '.join(lacking)}"] if lacking else []
    parts += [f"claimed but not found: {'; '.join(more)}"] if more else []
    return failed(name, ", ".join(parts) or "in another order, or more than once")


def agree(claimed: certificate.Run, found: certificate.Run) -> bool:
    """float64 sums of NumPy may differ in their last digits from machine to machine."""
    exact = (claimed.shape, claimed.seed, claimed.elements, claimed.outside)
    numbers = ((claimed.worst, found.worst), (claimed.allowed, found.allowed))
    same_runs = exact == (found.shape, found.seed, found.elements, found.outside)
    return same_runs and all(abs(one - other) <= 1e-6 * abs(other) for one, other in numbers)


def of_runs(claimed: Sequence[certificate.Run], found: Sequence[certificate.Run]) -> Check:
    """Whether the runs that a delivery names give the errors that it names."""
    why = f"{len(found)} runs give the errors that are claimed"
    alike = len(found) == len(claimed) and all(map(agree, claimed, found))
    return passed("runs", why) if alike else failed("runs", f"{why}: they give others")


def of_versions(claimed: Certificate) -> Check:
    here = claims.versions()
    differ = [
        f"{name} {claimed.versions.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in sorted({*claimed.versions, *here})
        if claimed.versions.get(name) != here.get(name)
    ]
    if differ:
        return unchecked("versions", f"made with others: {brief('; '.join(differ))}")
    return passed("versions", ", ".join(f"{name} {found}" for name, found in here.items()))
