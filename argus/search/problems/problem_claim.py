"""What a written kernel must prove of a problem from a file or a family: what the problem's own kernel proves."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from argus.core.index_text import show
from argus.core.ir import Assert, Covers, Kernel, Program, Tag, WrittenOnce, walk
from argus.core.verdict import ProgramReport, Proved, Report
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.traced import Traced, written_names

_READS = re.compile(r"\b([A-Za-z_]\w*)\[")
"""The tensors that a formula reads."""


@frozen
class ProblemClaim:
    """What the problem's own kernel claims, as texts: proved formulas, the tags of each tensor, sums and outputs."""

    formulas: frozenset[str]
    tags: frozenset[tuple[str, ...]]
    whole: frozenset[tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        """The names of its tags."""
        return frozenset(name for _, name, _ in self.tags)


@lru_cache(maxsize=8)
def problem_claim(
    problem: KernelFile | FamilyProblem, verify: Callable[[Traced], Report | ProgramReport]
) -> ProblemClaim | None:
    """The claim of the problem's first kernel or program; None if that is not proved, or claims nothing."""
    if isinstance(problem, FamilyProblem):
        own = problem.kernel(problem.space.usual)
    else:
        first = next(iter(problem.variants.values()))
        if first.suggested:
            return None
        own = first.kernel
    verdict = verify(own).verdict
    if not isinstance(verdict, Proved):
        return None
    if isinstance(own, Kernel):
        return ProblemClaim(_formulas(verdict), tags_of(own), _whole(own))
    formulas = _formulas_of_program(own, verdict)
    return ProblemClaim(formulas, frozenset(), frozenset()) if formulas else None


def missing_part(verdict: Proved, kernel: Kernel, claim: ProblemClaim) -> str:
    """What a written kernel does not prove of the problem's claim; empty if it proves all of it.

    Its claims are relative to its tags, which are untrusted too: they must be the problem's.
    """
    lacking = sorted(claim.formulas - _formulas(verdict))
    if lacking:
        found = "; ".join(verdict.results) or "nothing"
        return f"the problem's claim is not proved: expected {'; '.join(lacking)}, found {found}"
    absent = sorted(" ".join(each) for each in claim.whole - _whole(kernel))
    if absent:
        return f"the problem's claim is not made: expected {'; '.join(absent)}"
    if tags_of(kernel) != claim.tags:
        differing = sorted(" ".join(each) for each in tags_of(kernel) ^ claim.tags)
        return f"its tags are not those of the problem's kernel: {', '.join(differing)}"
    return ""


def tags_of(kernel: Kernel) -> frozenset[tuple[str, ...]]:
    """Tensor, name and expression of each component of its tags."""
    tags = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Tag)]
    return frozenset((tag.view.buffer.name, name, show(index)) for tag in tags for name, index in tag.names)


def _formulas(verdict: Proved) -> frozenset[str]:
    """The formulas that outputs are proved to equal; results derived from tags have no normal form to compare."""
    return frozenset(each for each in verdict.results if each.startswith("assert_equals("))


def _formulas_of_program(program: Program, verdict: Proved) -> frozenset[str]:
    """Those of its outputs over its parameters alone; others are of launches, over what earlier ones have made."""
    known, written = {each.name for each in program.parameters}, written_names(program)
    about = tuple(f"assert_equals({name}, " for name in written)
    found = (each for each in verdict.results if each.startswith(about))
    return frozenset(each for each in found if set(_READS.findall(each)) <= known)


def _whole(kernel: Kernel) -> frozenset[tuple[str, ...]]:
    """The claims that sums are complete, and outputs written once with these tags."""
    found: set[tuple[str, ...]] = set()
    for stmt in walk(kernel.body):
        match stmt:
            case Assert(claim=Covers(of, low, high, where)):
                found.add(("assert_covers", of.name, show(low), show(high), show(where)))
            case Assert(claim=WrittenOnce(view, record, where)):
                said = (f"{name}={show(index)}" for name, index in record)
                found.add(("assert_written_once", view.buffer.name, *said, show(where)))
            case _:
                pass
    return frozenset(found)
