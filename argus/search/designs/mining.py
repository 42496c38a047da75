"""Mines techniques from an expert design, or any kernel: removes them one by one; proves, runs and times each step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.verdict import Finding, Proved, Report
from argus.policy.technique import Basis, Lineage, Technique
from argus.search.designs import designs
from argus.search.designs.ablation import estimate_effect
from argus.search.techniques import TRANSFORMATIONS
from argus.search.techniques.erasures import ERASURES
from argus.search.transformation import Design, Transformation

Verify = Callable[[Kernel], Report]
Disagrees = Callable[[Kernel], str]
"""Describes where a kernel's result is wrong; empty if it is right."""
Time = Callable[[str, Kernel], float | None]
"""Time of a design by name in microseconds, measured or predicted; None if unknown."""
Subject = TypeVar("Subject", bound=Hashable)


@frozen
class Space(Generic[Subject]):
    """Where mining moves. order: names of transformations, as a plan applies them.

    undo: of a transformation's name and a subject, the subject without it; None if it does not have it.
    """

    order: tuple[str, ...]
    undo: Callable[[str, Subject], Subject | None]
    kernel: Callable[[Subject], Kernel]
    name: Callable[[Subject], str]


def design_space(transformations: Mapping[str, Transformation] = TRANSFORMATIONS) -> Space[Design]:
    """Designs of the shipped family."""
    return Space(
        tuple(transformations), lambda each, of: transformations[each].undo(of), designs.kernel_of, designs.name
    )


@frozen
class Erased:
    """A kernel of a user, less what was erased of it."""

    name: str
    kernel: Kernel = field(eq=False, repr=False)
    without: tuple[str, ...] = ()

    def less(self, technique: str) -> Erased | None:
        made = ERASURES[technique](self.kernel) if technique in ERASURES else None
        return None if made is None else Erased(self.name, made, (*self.without, technique))

    def __str__(self) -> str:
        return self.name + "".join(f" without {each}" for each in self.without)


KERNELS: Space[Erased] = Space(tuple(TRANSFORMATIONS), lambda each, of: of.less(each), lambda of: of.kernel, str)
"""Any kernels, of which the IR says that they have a technique."""


@frozen
class Tools:
    """Dependencies of mining. command, shape, basis: recorded in the lineage."""

    verify: Verify
    disagrees: Disagrees
    time: Time
    basis: Basis
    command: str
    shape: str


@frozen
class Skill:
    """One step of the derivation. invariants: proved for the design with the technique, not applicable without it.

    before, after: times in microseconds.
    """

    technique: Technique
    without: str
    design: str
    invariants: tuple[str, ...]
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """Time without over time with."""
        return None if self.before is None or self.after is None else self.before / self.after


@frozen
class Rejected:
    """A step that was not taken. why: the reason."""

    technique: str
    without: str
    design: str
    why: str


@frozen
class MiningResult:
    """skills: in order of application, from `first` to `expert`."""

    expert: str
    first: str
    skills: tuple[Skill, ...]
    rejected: tuple[Rejected, ...]


@frozen(eq=False)
class _Verified(Generic[Subject]):
    """A design or kernel that is proved and computes the right result."""

    design: Subject
    kernel: Kernel
    findings: Mapping[str, Finding] = field(converter=dict[str, Finding])

    @property
    def proved(self) -> frozenset[str]:
        return frozenset(name for name, finding in self.findings.items() if finding.standing == "proved")


def mine(
    expert: Subject, techniques: Sequence[Technique], tools: Tools, space: Space[Subject]
) -> Iterator[Skill | Rejected]:
    """Yield the steps backwards from an expert design, in reverse order of the transformations; see `collect`.

    Consecutive uses of one technique are one step. Raises ArgusError if the expert design does not trace.
    """
    place = {named: i for i, named in enumerate(space.order)}
    ordered = sorted(techniques, key=lambda each: (place[each.transformation], each.name), reverse=True)
    current = _verify(expert, tools, space)
    if isinstance(current, str):
        yield Rejected("", "", space.name(expert), current)
        return
    refused: set[tuple[str, Subject]] = set()
    moved = True
    while moved:
        moved = False
        for technique in ordered:
            simpler, why = _undo_technique(current, technique, tools, space, refused)
            yield from why
            if simpler is not None:
                yield _skill(technique, simpler, current, tools, space)
                current, moved = simpler, True
                break


def collect(expert: str, steps: Sequence[Skill | Rejected]) -> MiningResult:
    """The steps of `mine` in order of application."""
    skills = tuple(step for step in reversed(steps) if isinstance(step, Skill))
    first = skills[0].without if skills else expert
    return MiningResult(expert, first, skills, tuple(step for step in steps if isinstance(step, Rejected)))


def _undo_technique(
    current: _Verified[Subject],
    technique: Technique,
    tools: Tools,
    space: Space[Subject],
    refused: set[tuple[str, Subject]],
) -> tuple[_Verified[Subject] | None, list[Rejected]]:
    """Undo a technique as often as the result is accepted; None if never. Also returns the rejected steps."""
    reached: _Verified[Subject] | None = None
    why: list[Rejected] = []
    while True:
        last = current if reached is None else reached
        without = space.undo(technique.transformation, last.design)
        if without is None or (technique.name, without) in refused:
            return reached, why
        found = _verify(without, tools, space)
        if isinstance(found, str):
            refused.add((technique.name, without))
            why.append(Rejected(technique.name, space.name(without), space.name(last.design), found))
            return reached, why
        reached = found


def _verify(design: Subject, tools: Tools, space: Space[Subject]) -> _Verified[Subject] | str:
    """Trace, prove and run a design; or return the reason why it fails."""
    try:
        kernel = space.kernel(design)
    except ArgusError as problem:
        return str(problem.diagnostic.message)
    report = tools.verify(kernel)
    if not isinstance(report.verdict, Proved) or report.uncovered:
        return f"it is {type(report.verdict).__name__.lower()}"
    wrong = tools.disagrees(kernel)
    return wrong or _Verified(design, kernel, {finding.invariant: finding for finding in report.findings})


def _skill(
    technique: Technique,
    simpler: _Verified[Subject],
    current: _Verified[Subject],
    tools: Tools,
    space: Space[Subject],
) -> Skill:
    unconcerned = {name for name, finding in simpler.findings.items() if finding.standing == "not applicable"}
    invariants = sorted(current.proved & unconcerned, key=lambda name: int(name[1:]))
    without, design = space.name(simpler.design), space.name(current.design)
    before, after = tools.time(without, simpler.kernel), tools.time(design, current.kernel)
    return Skill(technique, without, design, tuple(invariants), before, after)


def draft_technique(skill: Skill, number: int, mined: MiningResult, tools: Tools, target: str) -> Technique:
    """Draft a technique's page from this derivation alone: preconditions, effect and lineage."""
    technique = skill.technique
    rows = () if skill.ratio is None else (_row(skill, skill.ratio, tools, target),)
    needed = tuple(dict.fromkeys((*technique.preconditions, *skill.invariants)))
    text = (
        f"Step {number} of {len(mined.skills)} from `{mined.first}` to `{mined.expert}`: `{skill.without}` becomes "
        f"`{skill.design}`. Both are proved and agree in the interpreter.\n\n{technique.text}"
    )
    return evolve(
        technique,
        name=f"{number:02}-{technique.name}",
        targets=(target,),
        preconditions=needed,
        effect=estimate_effect(rows),
        lineage=rows,
        text=text,
        conjecture=not rows,
    )


def _row(skill: Skill, ratio: float, tools: Tools, target: str) -> Lineage:
    return Lineage(tools.command, target, tools.shape, skill.without, skill.design, ratio, tools.basis)
