"""Checks of a certificate that do not depend on the kind of problem: IR, proof, runs, versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from attrs import field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Program
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.serde import MalformedError, read
from argus.core.verdict import Proved
from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Certificate, Proof
from argus.search.certificates.check_result import Check, brief, check_equal, failed, passed, unchecked
from argus.search.problems.traced import Traced, admits, assumptions_text, kernels_of
from argus.solvers.base import Solver
from argus.verifier.api import verify

MOST_BYTES = 64 << 20
"""Size limit of a delivered file."""
_BLAMED = ("E1", "E2", "E4", "E5", "E9")
T = TypeVar("T")


@frozen
class CheckOptions:
    """solver: as for `verify`; without cached answers. seeds: of fresh inputs, not used in a delivery."""

    solver: str | Solver | None = None
    budget: Budget = field(factory=Budget)
    seeds: Sequence[int] = (2, 3)


def result_or_failure(name: str, find: Callable[[], T]) -> T | Check:
    """The result of `find`, or a failed check for an error caused by the claims."""
    try:
        return find()
    except ArgusError as problem:
        if problem.diagnostic.code.startswith(_BLAMED):
            return failed(name, f"{problem.diagnostic.code}: {problem.diagnostic.message}")
        raise


def load_kernel(claimed: Certificate, folder: Path, *, programs: bool) -> Traced | Check:
    """Parse the delivered IR strictly. programs: whether one of several launches is expected as well."""
    if "ir" not in claimed.files:
        return failed("ir", "the certificate lists no IR file")
    path = folder / claimed.files["ir"].name
    try:
        if path.stat().st_size > MOST_BYTES:
            return failed("ir", f"{path.name} is larger than {MOST_BYTES:,} bytes")
        (kernel,) = read(json.loads(path.read_bytes()))
    except (OSError, MalformedError, ValueError, RecursionError) as problem:
        return failed("ir", f"{path.name} contains no kernel: {brief(problem)}")
    except ArgusError as problem:
        return failed("ir", f"{path.name} is ill-formed: {problem.diagnostic.code}: {problem.diagnostic.message}")
    if isinstance(kernel, Program) and not programs:
        return failed("ir", f"{path.name} contains a program, expected a kernel")
    return kernel


def check_sizes(kernel: Traced, sizes: Mapping[str, int]) -> Check:
    """Check that the problem's extents satisfy the assumptions."""
    text = f"the kernel assumes {assumptions_text(kernel)}, at extents {dict(sizes)}"
    known = {symbol.name for symbol in kernel.sizes} <= sizes.keys()
    return passed("admitted", text) if known and admits(kernel, sizes) else failed("admitted", text)


def _emitted_code(kernel: Kernel) -> list[list[str]]:
    """The lines of the emitted sources without comments, which name the file that a kernel was traced from."""
    texts = claims.emit_sources(kernel)
    return [[line for line in text.split("\n") if not line.lstrip().startswith("//")] for text in texts]


def _compared(traced: Traced) -> list[object]:
    """What two traces of one design have alike: of a program all that it is but source lines, as what it claims."""
    rows = cast("list[list[object]]", claims.kernel_document(traced)["rows"]) if isinstance(traced, Program) else []
    whole = [row[:1] if row[0] == "Frame" else row for row in rows]
    return [whole, *((pretty(each), _emitted_code(each)) for each in kernels_of(traced))]


def check_trace(traced: Traced | Check, kernel: Traced) -> Check:
    """Check that the IR equals the design traced here."""
    if isinstance(traced, Check):
        return traced
    alike = _compared(traced) == _compared(kernel)
    why = "the IR equals the design traced here"
    return passed("traced", why) if alike else failed("traced", "the IR differs from the design traced here")


def check_proof(
    claimed: Proof, kernel: Traced, means: CheckOptions, short: Callable[[Proved], str] | None
) -> Iterator[Check]:
    """Verify the kernel again. short: states what a proof does not show, empty if nothing; None if unspecified."""
    report = result_or_failure("verdict", lambda: verify(kernel, solver=means.solver, budget=means.budget))
    if isinstance(report, Check):
        yield report
        return
    found = claims.proof(report)
    if found.verdict != "proved" or found.uncovered:
        left = f", no claim covers {', '.join(found.uncovered)}" if found.uncovered else ""
        yield failed("verdict", f"{found.solver} says {found.verdict}{left}, claimed {claimed.verdict}")
    else:
        yield check_equal(
            "verdict", claimed.verdict, found.verdict, f"{found.solver} proves it, without a cached answer"
        )
    if isinstance(report.verdict, Proved) and short is not None:
        left = short(report.verdict)
        yield (
            failed("product", left)
            if left
            else passed("product", "the proved result of C is the problem's specification")
        )
    yield check_equal("obligations", claimed.obligations, found.obligations, f"{found.obligations:,} obligations")
    yield compare_lists("invariants", claimed.invariants, found.invariants)
    yield compare_lists("assumptions", claimed.assumptions, found.assumptions)
    yield compare_lists("results", claimed.results, found.results)
    yield compare_lists("uncovered", claimed.uncovered, found.uncovered)
    if claimed.solver == found.solver:
        yield passed("solver", f"claimed and used: {found.solver}")
    else:
        yield unchecked("solver", f"claimed {claimed.solver}, used {found.solver}; name it with --solver")


def compare_lists(name: str, claimed: Sequence[object], found: Sequence[object]) -> Check:
    """Compare two lists, and report the elements in only one of them."""
    if claimed == found:
        return passed(name, f"{len(found):,} claimed and found")
    lacking = [brief(each) for each in found if each not in claimed]
    more = [brief(each) for each in claimed if each not in found]
    parts = [f"not claimed: {'; '.join(lacking)}"] if lacking else []
    parts += [f"claimed but not found: {'; '.join(more)}"] if more else []
    return failed(name, ", ".join(parts) or "in another order, or more than once")


def runs_agree(claimed: certificate.Run, found: certificate.Run) -> bool:
    """Whether two runs agree; errors up to 1e-6, as NumPy's float64 sums depend on the machine."""
    exact = (claimed.shape, claimed.seed, claimed.elements, claimed.outside)
    numbers = ((claimed.worst, found.worst), (claimed.allowed, found.allowed))
    same_runs = exact == (found.shape, found.seed, found.elements, found.outside)
    return same_runs and all(abs(one - other) <= 1e-6 * abs(other) for one, other in numbers)


def check_runs(claimed: Sequence[certificate.Run], found: Sequence[certificate.Run]) -> Check:
    """Check that the claimed runs have the claimed errors."""
    why = f"{len(found)} runs have the claimed errors"
    alike = len(found) == len(claimed) and all(map(runs_agree, claimed, found))
    return passed("runs", why) if alike else failed("runs", f"{len(found)} runs have other errors than claimed")


def check_versions(claimed: Certificate) -> Check:
    """Compare the versions of Argus, solvers and compilers."""
    here = claims.versions()
    differ = [
        f"{name} {claimed.versions.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in sorted({*claimed.versions, *here})
        if claimed.versions.get(name) != here.get(name)
    ]
    if differ:
        return unchecked("versions", f"made with other versions: {brief('; '.join(differ))}")
    return passed("versions", ", ".join(f"{name} {found}" for name, found in here.items()))
