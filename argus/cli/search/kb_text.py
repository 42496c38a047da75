"""Formats techniques, their checks and mined skills as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import asdict

from argus.policy.practice import Practice
from argus.policy.technique import Technique
from argus.search.designs.knowledge_check import CheckResult, Example
from argus.search.designs.mining import MiningResult, Rejected, Skill
from argus.search.designs.practice_check import PracticeCheck


def listed(techniques: tuple[Technique, ...], practices: tuple[Practice, ...] = ()) -> Iterator[str]:
    """One line per technique, those with the widest scope first, then one per practice with its range of ratios."""
    width = max(len(each.name) for each in (*techniques, *practices))
    for each in sorted(techniques, key=lambda technique: technique.order):
        likely = f"{each.effect.likely:5.2f}x" if each.lineage else "  open"
        yield f"{each.name:{width}}  {each.scope:11}  {', '.join(each.targets):14}  {likely}  {each.title}"
    for each in practices:
        yield f"{each.name:{width}}  {each.family:11}  {', '.join(each.targets):14}  {_range(each)}  {each.title}"


def _range(practice: Practice) -> str:
    ratios = [row.ratio for row in practice.experiments]
    return f"{min(ratios):.2f} to {max(ratios):.2f}x" if ratios else "conjecture"


def shown(technique: Technique) -> Iterator[str]:
    """All fields of a technique."""
    yield f"{technique.title} ({technique.name})"
    yield technique.intent
    yield ""
    yield f"scope          {technique.scope}, on {', '.join(technique.targets)}"
    yield f"applies        where `{technique.applies}`"
    yield f"preconditions  {', '.join(technique.preconditions)}"
    yield f"effect         {technique.effect}" + ("" if technique.lineage else "; no experiment supports it yet")
    yield f"risk           {technique.risk}"
    yield f"signature      {technique.signature}"
    for place, row in enumerate(technique.lineage):
        head = "" if place else "lineage"
        yield f"{head:13}  {row.ratio:.2f}x {row.basis}, {row.shape} on {row.target}: {row.without} -> {row.design}"
    yield ""
    yield from technique.text.splitlines()


def shown_practice(practice: Practice) -> Iterator[str]:
    """All fields of a practice."""
    yield f"{practice.title} ({practice.name})"
    yield practice.intent
    yield ""
    yield f"family       {practice.family}, on {', '.join(practice.targets)}"
    yield f"invariants   {', '.join(practice.invariants)}"
    yield f"applies      {practice.applies}"
    yield f"loses        {practice.loses}"
    if practice.conjecture:
        yield "experiments  none: a conjecture"
    for place, row in enumerate(practice.experiments):
        designs = f": {row.without} -> {row.design}" if row.design else ""
        yield f"{'' if place else 'experiments':11}  {row.ratio:.2f}x, {row.shape}{designs} ({row.record})"
    yield ""
    yield from practice.text.splitlines()


def as_json(page: Technique | Practice) -> dict[str, object]:
    return asdict(page)


def checked_lines(checked: CheckResult) -> Iterator[str]:
    """The examples that a technique was checked on, or the faults of its file."""
    name = checked.technique.name
    yield from (f"wrong  {name}: {fault}" for fault in checked.faults)
    if not checked.faults:
        yield f"right  {name}: {'; '.join(_example(each) for each in checked.examples)}"


def checked_practice_lines(checked: PracticeCheck) -> Iterator[str]:
    """How many experiments of a practice were compared with their records, or the faults of its file."""
    name = checked.practice.name
    yield from (f"wrong  {name}: {fault}" for fault in checked.faults)
    if not checked.faults:
        told = len(checked.practice.experiments)
        yield f"right  {name}: {f'{checked.compared} of {told} experiments compared' if told else 'a conjecture'}"


def checked_practice_json(checked: PracticeCheck) -> dict[str, object]:
    return {"practice": checked.practice.name, "compared": checked.compared, "faults": list(checked.faults)}


def _example(each: Example) -> str:
    proved = ", proved" if each.proved else ""
    return f"{each.before} -> {each.after}{proved}"


def checked_json(checked: CheckResult) -> dict[str, object]:
    return {
        "technique": checked.technique.name,
        "examples": [asdict(each) for each in checked.examples],
        "faults": list(checked.faults),
    }


def step_line(step: Skill | Rejected) -> str:
    """One mining step: the technique that was removed, or why it was not."""
    if isinstance(step, Rejected):
        return f"kept   {step.technique or step.design}: {step.why}"
    loss = "" if step.ratio is None else f", {step.ratio:.2f} times the time"
    return f"undone {step.technique.name}: {step.design} -> {step.without}{loss}"


def mined_json(mined: MiningResult) -> dict[str, object]:
    return {
        "expert": mined.expert,
        "first": mined.first,
        "skills": [_skill(each) for each in mined.skills],
        "rejected": [asdict(each) for each in mined.rejected],
    }


def _skill(skill: Skill) -> dict[str, object]:
    return {
        "technique": skill.technique.name,
        "without": skill.without,
        "design": skill.design,
        "applies": skill.technique.applies,
        "preconditions": list(dict.fromkeys((*skill.technique.preconditions, *skill.invariants))),
        "before": skill.before,
        "after": skill.after,
        "ratio": skill.ratio,
    }
