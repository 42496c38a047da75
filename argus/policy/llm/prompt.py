"""Builds the request of one question: a cacheable prefix that is constant over a run, then the state of the search.

The order is tools, system, message, as endpoints cache them. Task, language, techniques of the target and problem are
constant over a run; cache breakpoints are at the end of the system text and of the problem text. All texts together
have at most `MOST_BYTES` bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from argus.policy.knowledge import related_techniques
from argus.policy.llm.instructions import EXAMPLES, LANGUAGE, SCHEMA, TASK, TOOL
from argus.policy.llm.memory import Memory
from argus.policy.llm.settings import Settings
from argus.policy.llm.texts import encodable, truncated
from argus.policy.llm.view import Rejection, View
from argus.policy.planner import Choice, Observation, RankedChoice, Situation, State
from argus.policy.technique import Technique

MOST_BYTES = 96_000
_INDEX, _RELATED, _KERNEL, _OPTIONS, _TRIED, _REPORTS, _LESSONS = 9_000, 8_000, 16_000, 11_000, 7_000, 8_000, 5_000
"""Byte budgets: technique index, techniques in full, best kernel, open options, tried ones, reports, lessons."""
_NAMES = 3_000
_KNOBS = 6_000
_KIND = "kind"
_FAULTS = 4_000
_ONE_REPORT = 3_000
_NEAREST = 5
_FIELD = 200
_CACHED = {"cache_control": {"type": "ephemeral"}}


def request(
    settings: Settings, state: State[Memory], ranking: Sequence[RankedChoice], view: View, faults: tuple[str, ...] = ()
) -> dict[str, object]:
    """The body of a Messages API call, as a dict.

    ranking: open choices in the order to show them. faults: errors of the last answer to this question, to be repaired.
    """
    chosen = {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True}
    free = {"type": "auto", "disable_parallel_tool_use": True}
    effort: dict[str, object] = {} if settings.effort is None else {"output_config": {"effort": settings.effort}}
    description = "Proposes what to try next. Always answer by calling this tool, once."
    return {
        "model": settings.model,
        "max_tokens": settings.max_tokens,
        "tools": [{"name": TOOL, "description": description, "input_schema": SCHEMA}],
        "tool_choice": chosen if settings.forced else free,
        "system": [{"type": "text", "text": system(state.situation.target, view.techniques), **_CACHED}],
        "messages": [{"role": "user", "content": list(_message(state, ranking, view, faults))}],
        **effort,
    }


def size(fields: dict[str, object]) -> int:
    """Size of a request in bytes: an upper bound of its tokens."""
    return len(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def system(target: str, techniques: tuple[Technique, ...]) -> str:
    """The system text: task, language, example and technique index; constant over a run."""
    lines = (
        f"- {each.name} ({each.scope}; speeds up {each.effect}; must be proved: "
        f"{', '.join(each.preconditions) or 'nothing'}): {each.intent}"
        for each in sorted(techniques, key=lambda each: each.order)
        if target in each.targets
    )
    index = "\n".join(_first_that_fit(lines, _INDEX)) or "none is known"
    return encodable(f"{TASK}\n\n{LANGUAGE}{EXAMPLES.get(target, '')}\nTechniques of {target}:\n{index}")


def _message(
    state: State[Memory], ranking: Sequence[RankedChoice], view: View, faults: tuple[str, ...]
) -> Iterable[dict[str, object]]:
    yield {"type": "text", "text": _problem(state.situation), **_CACHED}
    yield {"type": "text", "text": _now(state, ranking, view)}
    if faults:
        lines = "\n".join(_first_that_fit((f"- {each}" for each in faults), _FAULTS))
        yield {
            "type": "text",
            "text": f"Your last answer could not be used:\n{lines}\nCorrect it and call `{TOOL}` again.",
        }


def _problem(situation: Situation) -> str:
    lines = {
        "target": situation.target,
        "problem": situation.problem,
        "speed_of_light_us": situation.bound,
    }
    # Over all designs, so that the text does not depend on which of them have been tried.
    designs = (*(each.choice for each in situation.tried), *situation.options)
    knobs = _lines(({"kind": kind, "knobs": values} for kind, values in _spaces(designs)), _KNOBS)
    problem = truncated(json.dumps(lines), _NAMES)
    return f"The problem:\n{problem}\n\nThe designs, by kind, and the values of knobs:\n{knobs}"


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


def _now(state: State[Memory], ranking: Sequence[RankedChoice], view: View) -> str:
    situation, memory = state.situation, state.memory
    best = situation.best
    standing = {
        "bottleneck": situation.bottleneck,
        "gap": None if situation.gap is None else round(situation.gap, 4),
        "best": None if best is None else _tried(best),
        "candidates_tried": len(situation.tried),
        "options_open": len(ranking),
    }
    options = map(_open, _interleaved_by_kind(ranking))
    techniques = sorted({step.technique for each in ranking for step in each.choice.steps})
    parts = (
        ("State of the search", json.dumps(standing)),
        (
            "Text of the best design",
            f"```python\n{truncated(view.kernel, _KERNEL)}\n```" if view.kernel else "not shown",
        ),
        ("Tried, the latest first", _lines((_tried(each) for each in reversed(situation.tried)), _TRIED)),
        ("Reports of rejected candidates, the latest first", _reports(view.rejections)),
        ("Result of each, the latest last", "\n".join(_last_that_fit(memory.feedback, _LESSONS)) or "nothing yet"),
        ("Your lessons", "\n".join(_first_that_fit((f"- {each}" for each in memory.lessons), _LESSONS)) or "none yet"),
        ("Techniques that may be relevant", _nearest(situation, view)),
        ("Techniques of open options", _lines(techniques, _NAMES)),
        ("Open options, some of each kind, in the order of a statistical model", _lines(options, _OPTIONS)),
    )
    return encodable("\n\n".join(f"## {title}\n{text}" for title, text in parts))


def _steps(choice: Choice) -> str:
    return " + ".join(map(str, choice.steps))[:_FIELD]


def _tried(found: Observation) -> dict[str, object]:
    took = {} if found.microseconds is None else {"us": round(found.microseconds, 3)}
    return {"name": found.choice.name, "steps": _steps(found.choice), "outcome": found.outcome, **took}


def _open(found: RankedChoice) -> dict[str, object]:
    techniques = list(dict.fromkeys(step.technique for step in found.choice.steps))
    return {"name": found.choice.name, "techniques": techniques, "knobs": dict(found.choice.knobs)}


def _reports(rejections: tuple[Rejection, ...]) -> str:
    lines = (f"{each.name} ({each.outcome}): {truncated(each.report, _ONE_REPORT)}" for each in reversed(rejections))
    return "\n".join(_first_that_fit(lines, _REPORTS)) or "none"


def _nearest(situation: Situation, view: View) -> str:
    """The full pages of the techniques most relevant to the bottleneck and the reports."""
    words = " ".join([situation.bottleneck, situation.problem, *(each.report for each in view.rejections[-3:])])
    found = related_techniques(view.techniques, words[:_ONE_REPORT], situation.target)[:_NEAREST]
    lines = (
        f"### {each.name}\n{each.intent}\nRisk: {each.risk} Symptom: {each.signature}\n{each.text}" for each in found
    )
    return "\n".join(_first_that_fit(lines, _RELATED)) or "none"


def _lines(values: Iterable[object], most: int) -> str:
    return "\n".join(_first_that_fit((json.dumps(each) for each in values), most)) or "none"


def _first_that_fit(lines: Iterable[str], most: int) -> list[str]:
    """The first lines that fit into `most` bytes, then a note if there are more."""
    kept: list[str] = []
    left = most
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            return [*kept, "[more are left out]"]
        kept.append(line)
    return kept


def _last_that_fit(lines: tuple[str, ...], most: int) -> list[str]:
    return list(reversed(_first_that_fit(reversed(lines), most)))
