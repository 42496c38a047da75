"""The planner's request: which designs, techniques or kernels to try next, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import frozen

from argus.policy.knowledge import related_techniques
from argus.policy.llm.examples import retrieved
from argus.policy.llm.instructions import LANGUAGE, SCHEMA, TASK, TOOL
from argus.policy.llm.own_claims import ranked_claims
from argus.policy.llm.parse_reply import parse_proposals
from argus.policy.llm.reply import Faulty, Reply
from argus.policy.llm.roles import Question, Tool
from argus.policy.llm.sections import (
    as_lines,
    fenced,
    first_that_fit,
    last_that_fit,
    legend,
    listed,
    refused,
    shown,
    titled,
)
from argus.policy.llm.texts import truncated
from argus.policy.llm.view import Rejection, View
from argus.policy.partial_reward import partial_reward
from argus.policy.planner import Choice, Observation, RankedChoice
from argus.policy.practice import Practice
from argus.policy.technique import Technique

_INDEX, _RELATED, _OPTIONS, _TRIED, _LESSONS, _EARLIER, _LEGEND = 7_000, 6_000, 7_000, 4_000, 4_000, 3_000, 3_000
"""Byte budgets: technique index, techniques in full, open options, tried ones, lessons, those of other runs, legend."""
_BEST, _LAST, _REFUSED, _ONE_REFUSED, _REFERENCE = 12_000, 5_000, 12_000, 3_500, 4_000
"""Byte budgets: text of the best and the last kernel, refusals, each of their parts, the problem's reference."""
_EXAMPLES = 9_000
_PRACTICES = 6_000
_CLAIMS = 2_000
_NAMES = 2_000
_KNOBS = 5_000
_KIND = "kind"
_NEAREST = 5
_FIELD = 200
_WORDS = 3_000


@frozen
class PlannerRole:
    """Asks for proposals, ranked by confidence and expected speedup."""

    @property
    def tool(self) -> Tool:
        description = "Proposes what to try next. Always answer by calling this tool, once."
        return Tool(TOOL, description, SCHEMA)

    def system(self, asked: Question) -> str:
        situation = asked.state.situation
        index = technique_index(asked.view.techniques, situation.target)
        return f"{TASK}\n\n{LANGUAGE}{retrieved(asked, _EXAMPLES)}\nTechniques of {situation.target}:\n{index}"

    def problem(self, asked: Question) -> str:
        situation = asked.state.situation
        # Over all designs, so that the text does not depend on which of them have been tried.
        designs = (*(each.choice for each in situation.tried), *situation.options)
        family = tuple(each for each in designs if not each.text)
        knobs = as_lines(({"kind": kind, "knobs": values} for kind, values in _spaces(family)), _KNOBS)
        tried = practice_index(asked.view.practices)
        told = f"\n\nWhat was tried on this family, with recorded ratios of speed:\n{tried}" if tried else ""
        return f"{problem_text(asked)}{told}\n\nThe designs, by kind, and the values of knobs:\n{knobs}"

    def now(self, asked: Question) -> str:
        state, ranking, view = asked.state, asked.ranking, asked.view
        situation, memory = state.situation, state.memory
        refusals = _refusals(view.rejections)
        options = map(_open, _interleaved_by_kind(ranking))
        techniques = sorted({step.technique for each in ranking for step in each.choice.steps})
        history = "\n".join(last_that_fit(memory.feedback, _LESSONS))
        related = _nearest(asked)
        return titled(
            (
                ("State of the search", json.dumps(_standing(asked))),
                ("The best kernel", shown(view.best, _BEST)),
                ("The last kernel", _last(view)),
                ("Tried, the latest first", as_lines(map(_tried(asked), reversed(situation.tried)), _TRIED)),
                ("Refused candidates, the latest first", refusals),
                ("Result of each, the latest last", history or "nothing yet"),
                ("Your lessons", listed(memory.lessons, _LESSONS, "none yet")),
                ("Your own claims, by what they excluded", listed(map(str, ranked_claims(situation)), _CLAIMS, "")),
                ("Lessons of earlier runs", listed(view.earlier, _EARLIER, "none")),
                ("What the ids of invariants mean", legend((refusals, history, related), _LEGEND)),
                ("Techniques that may be relevant", related),
                ("Techniques of open options", as_lines(techniques, _NAMES)),
                ("Open options, some of each kind, in the order of a statistical model", as_lines(options, _OPTIONS)),
            )
        )

    def parse(self, data: object, asked: Question) -> Reply | Faulty:
        return parse_proposals(data, tuple(each.choice for each in asked.ranking))


def technique_index(techniques: tuple[Technique, ...], target: str) -> str:
    """One line for each technique of a target."""
    lines = (
        f"- {each.name} ({each.scope}; speeds up {each.effect}; must be proved: "
        f"{', '.join(each.preconditions) or 'nothing'}): {each.intent}"
        for each in sorted(techniques, key=lambda each: each.order)
        if target in each.targets
    )
    return "\n".join(first_that_fit(lines, _INDEX)) or "none is known"


def practice_index(practices: tuple[Practice, ...]) -> str:
    """Practices with when they gain and when they lost; empty if there are none."""
    return "\n".join(first_that_fit(map(_practice, practices), _PRACTICES))


def _practice(each: Practice) -> str:
    ratios = [row.ratio for row in each.experiments]
    found = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "a conjecture"
    needs = ", ".join(each.invariants) or "nothing"
    return (
        f"- {each.name} ({found}; must be proved: {needs}): {each.intent}\n"
        f"  Gains: {each.applies}\n  Lost: {each.loses}"
    )


def problem_text(asked: Question) -> str:
    """Target, problem and speed of light, and the problem's reference."""
    situation = asked.state.situation
    facts = {
        "target": situation.target,
        "problem": asked.view.problem or situation.problem,
        "speed_of_light_us": situation.bound,
    }
    told = truncated(json.dumps(facts), _NAMES)
    reference = asked.view.reference
    specified = f"\n\nIts reference, as data:\n{fenced(truncated(reference, _REFERENCE))}" if reference else ""
    return f"The problem:\n{told}{specified}"


def _standing(asked: Question) -> dict[str, object]:
    situation, best = asked.state.situation, asked.state.situation.best
    return {
        "bottleneck": situation.bottleneck,
        "gap": None if situation.gap is None else round(situation.gap, 4),
        "best": None if best is None else _tried(asked)(best),
        "candidates_tried": len(situation.tried),
        "options_open": len(asked.ranking),
    }


def _last(view: View) -> str:
    same = view.last is not None and view.best is not None and view.last.name == view.best.name
    return "the same" if same else shown(view.last, _LAST)


def _refusals(rejections: tuple[Rejection, ...]) -> str:
    texts = (refused(each, _ONE_REFUSED) for each in reversed(rejections))
    return "\n".join(first_that_fit(texts, _REFUSED)) or "none"


def _spaces(designs: Sequence[Choice]) -> list[tuple[str, dict[str, list[int | bool | str]]]]:
    """For each kind of design, the sorted values of its knobs."""
    found: dict[str, dict[str, set[int | bool | str]]] = {}
    for each in designs:
        if not each.knobs:
            continue
        space = found.setdefault(_kind(each), {})
        for name, value in each.knobs:
            if name != _KIND:
                space.setdefault(name, set()).add(value)
    return [
        (kind, {name: sorted(values, key=lambda value: (str(type(value)), value)) for name, values in space.items()})
        for kind, space in sorted(found.items())
    ]


def _kind(choice: Choice) -> str:
    """The value of the knob `kind`; designs without that knob are all of one kind."""
    return str(dict(choice.knobs).get(_KIND, ""))


def _interleaved_by_kind(ranking: Sequence[RankedChoice]) -> list[RankedChoice]:
    """Round-robin over kinds: the first of each kind, then the second of each, in the order of the ranking."""
    counts: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, each in enumerate(ranking):
        kind = _kind(each.choice)
        turns.append((counts[kind], place))
        counts[kind] += 1
    return [ranking[place] for _, place in sorted(turns)]


def _tried(asked: Question) -> Callable[[Observation], dict[str, object]]:
    bound = asked.state.situation.bound

    def data(found: Observation) -> dict[str, object]:
        """One candidate, its outcome first."""
        took = {} if found.microseconds is None else {"us": round(found.microseconds, 3)}
        stage = {"stage": found.stage} if found.stage and found.microseconds is None else {}
        reward = {"reward": round(partial_reward(found, bound), 3)}
        return {
            "outcome": found.outcome,
            **stage,
            **took,
            **reward,
            "name": found.choice.name,
            "steps": " + ".join(map(str, found.choice.steps))[:_FIELD],
        }

    return data


def _open(found: RankedChoice) -> dict[str, object]:
    techniques = list(dict.fromkeys(step.technique for step in found.choice.steps))
    return {"name": found.choice.name, "techniques": techniques, "knobs": dict(found.choice.knobs)}


def _nearest(asked: Question) -> str:
    """The full pages of the techniques most relevant to the bottleneck and the reports."""
    situation, view = asked.state.situation, asked.view
    limits = "" if view.best is None else view.best.limiting
    reports = (each.report for each in view.rejections[-3:])
    words = " ".join([situation.bottleneck, limits, view.problem or situation.problem, *reports])
    found = related_techniques(view.techniques, words[:_WORDS], situation.target)[:_NEAREST]
    lines = (
        f"### {each.name}\n{each.intent}\nRisk: {each.risk} Symptom: {each.signature}\n{fenced(each.text)}"
        for each in found
    )
    return "\n".join(first_that_fit(lines, _RELATED)) or "none"
