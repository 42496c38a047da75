"""Checks files of the knowledge base on kernels: names exist, transformations take effect, preconditions are proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.verdict import Proved, Report
from argus.kernels.gemm import configuration
from argus.policy.matchers import MATCHERS, Matcher
from argus.policy.technique import Lineage, Technique
from argus.search.designs import designs
from argus.search.designs.practice_check import support_faults, unknown_names
from argus.search.techniques import TRANSFORMATIONS
from argus.search.transformation import Design, Transformation

_TRIED = 12
"""Number of examples to verify until one is proved with all preconditions."""

Verify = Callable[[Kernel], Report]


@frozen
class Example:
    """A kernel that the technique changes. before, after: names of designs, or of a design and its rewrite.

    proved: whether the changed kernel is proved including all preconditions; None if not verified.
    """

    target: str
    before: str
    after: str
    proved: bool | None = None


@frozen
class CheckResult:
    """Result of checking a file. faults: messages; empty if it is correct."""

    technique: Technique
    examples: tuple[Example, ...]
    faults: tuple[str, ...]


@frozen
class CheckContext:
    """Inputs of a check. ground: designs of a target, in the order to try. others: further kernels for IR rewrites."""

    transformations: Mapping[str, Transformation] = TRANSFORMATIONS
    matchers: Mapping[str, Matcher] = MATCHERS
    ground: Callable[[str], Iterator[Design]] = designs.candidate_designs
    others: Callable[[str], Iterator[tuple[str, Kernel]]] = designs.other_kernels
    verify: Verify | None = None


@frozen(eq=False)
class _Change:
    before: str
    after: str
    old: Kernel
    new: Kernel


def check_technique(technique: Technique, bench: CheckContext) -> CheckResult:
    """Check that all names exist and the technique changes a kernel; with `bench.verify`, also prove the result."""
    supported = support_faults(technique.lineage, conjecture=technique.conjecture)
    faults = [*supported, *_unknown_names(technique, bench), *_lineage_faults(technique, bench)]
    transformation = bench.transformations.get(technique.transformation)
    matcher = bench.matchers.get(technique.applies)
    if transformation is None or matcher is None:
        return CheckResult(technique, (), tuple(faults))
    examples: list[Example] = []
    for target in technique.targets:
        found = _example(technique, target, partial(_changes, transformation, matcher, bench, target), bench)
        if isinstance(found, str):
            faults.append(f"{target}: {found}")
        else:
            examples.append(found)
    return CheckResult(technique, tuple(examples), tuple(faults))


def _unknown_names(technique: Technique, bench: CheckContext) -> Iterator[str]:
    if technique.applies not in bench.matchers:
        yield f"there is no matcher `{technique.applies}`"
    if technique.transformation not in bench.transformations:
        yield f"there is no transformation `{technique.transformation}`"
    yield from unknown_names(technique.preconditions, technique.targets)


def _lineage_faults(technique: Technique, bench: CheckContext) -> Iterator[str]:
    transformation = bench.transformations.get(technique.transformation)
    for row in technique.lineage:
        yield from (f"lineage: `{n}` is not a design" for n in (row.without, row.design) if configuration(n) is None)
        if transformation is not None and not _is_ablation(transformation, row):
            yield f"lineage: `{row.design}` without the technique is not `{row.without}`"


def _is_ablation(transformation: Transformation, row: Lineage) -> bool:
    design, without = configuration(row.design), configuration(row.without)
    return design is None or without is None or transformation.undo(design) == without


def _example(
    technique: Technique, target: str, changes: Callable[[], Iterator[_Change]], bench: CheckContext
) -> Example | str:
    """The first kernel that the technique changes, or an error message."""
    tried = list(islice(changes(), 1 if bench.verify is None else _TRIED))
    if not tried:
        return f"`{technique.transformation}` changes no kernel of which `{technique.applies}` is true"
    made = [Example(target, each.before, each.after) for each in tried]
    if bench.verify is None:
        return made[0]
    reason = ""
    for each, example in zip(tried, made, strict=True):
        wrong = _not_proved(bench.verify(each.new), technique.preconditions)
        if not wrong:
            return evolve(example, proved=True)
        reason = reason or f"`{example.after}`: {wrong}"
    return reason


def _not_proved(report: Report, preconditions: tuple[str, ...]) -> str:
    """Why a kernel or a precondition is not proved; empty if all are."""
    if not isinstance(report.verdict, Proved) or report.uncovered:
        return f"it is {type(report.verdict).__name__.lower()}"
    standing = {finding.invariant: finding.standing for finding in report.findings}
    open_ = [f"{each} is {standing.get(each, 'not there')}" for each in preconditions if standing.get(each) != "proved"]
    return ", ".join(open_)


def _changes(transformation: Transformation, matcher: Matcher, bench: CheckContext, target: str) -> Iterator[_Change]:
    """Changes of kernels for which the matcher is true: those that trace and differ from the original."""
    for design in bench.ground(target):
        made = transformation.apply(design)
        if not made and not transformation.rewrites:
            continue
        old = _traced(design)
        if old is None or not matcher(old):
            continue
        named = designs.name(design)
        for each in made:
            new = _traced(each)
            if new is not None and _text(new) != _text(old):
                yield _Change(named, designs.name(each), old, new)
        yield from _rewritten(transformation, named, old)
    for named, old in bench.others(target):
        if matcher(old):
            yield from _rewritten(transformation, named, old)


def _rewritten(transformation: Transformation, named: str, old: Kernel) -> Iterator[_Change]:
    for new in transformation.rewrite(old):
        if _text(new) != _text(old):
            yield _Change(named, f"{named}, rewritten", old, new)


def _traced(design: Design) -> Kernel | None:
    try:
        return designs.kernel_of(design)
    except ArgusError:
        return None


def _text(kernel: Kernel) -> str:
    return pretty(evolve(kernel, name="kernel"))
