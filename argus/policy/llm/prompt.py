"""The request of one question: a prefix that stays equal over a run, and what the search looks like now.

The order is tools, system, message, as an endpoint caches them. The task, the language, the techniques of the target
and the problem stay equal over a run; the ends of the system's text and of the problem's carry a mark up to which the
endpoint is to cache, and what stands behind them is new with each question. All texts together have at most
`MOST_BYTES` bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from argus.policy.knowledge import related
from argus.policy.llm.card import EXAMPLES, LANGUAGE, SCHEMA, TASK, TOOL
from argus.policy.llm.memory import Memory
from argus.policy.llm.settings import Settings
from argus.policy.llm.texts import encodable, within
from argus.policy.llm.view import Rejection, View
from argus.policy.planner import Choice, Observation, Ranked, Situation, State
from argus.policy.technique import Technique

MOST_BYTES = 96_000
_INDEX, _RELATED, _KERNEL, _OPTIONS, _TRIED, _REPORTS, _LESSONS = 9_000, 8_000, 16_000, 11_000, 7_000, 8_000, 5_000
"""Bytes of parts: all techniques, those described in full, the kernel, open options, tried ones, reports, lessons."""
_NAMES = 3_000
_KNOBS = 6_000
_KIND = "kind"
_FAULTS = 4_000
_ONE_REPORT = 3_000
_NEAREST = 5
_FIELD = 200
_CACHED = {"cache_control": {"type": "ephemeral"}}


def request(
    settings: Settings, state: State[Memory], ranking: Sequence[Ranked], view: View, faults: tuple[str, ...] = ()
) -> dict[str, object]:
    """The fields of a call of the Messages API.

    ranking: open choices, those to show first. faults: of the last answer to this question, for the model to mend.
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
    """Bytes of a request, at least as many as it has tokens."""
    return len(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def system(target: str, techniques: tuple[Technique, ...]) -> str:
    """What does not change over a run."""
    lines = (
        f"- {each.name} ({each.scope}; speeds up {each.effect}; must be proved: "
        f"{', '.join(each.preconditions) or 'nothing'}): {each.intent}"
        for each in sorted(techniques, key=lambda each: each.order)
        if target in each.targets
    )
    index = "\n".join(_fitting(lines, _INDEX)) or "none is known"
    return encodable(f"{TASK}\n\n{LANGUAGE}{EXAMPLES.get(target, '')}\nTechniques of {target}:\n{index}")


def _message(
    state: State[Memory], ranking: Sequence[Ranked], view: View, faults: tuple[str, ...]
) -> Iterable[dict[str, object]]:
    yield {"type": "text", "text": _problem(state.situation), **_CACHED}
    yield {"type": "text", "text": _now(state, ranking, view)}
    if faults:
        told = "\n".join(_fitting((f"- {each}" for each in faults), _FAULTS))
        yield {"type": "text", "text": f"Your last answer could not be used:\n{told}\nCall `{TOOL}` again, mended."}


def _problem(situation: Situation) -> str:
    told = {
        "target": situation.target,
        "problem": situation.problem,
        "speed_of_light_us": situation.bound,
    }
    # Of all designs, so that the text stays equal whichever of them have been tried.
    designs = (*(each.choice for each in situation.tried), *situation.options)
    knobs = _lines(({"kind": kind, "knobs": values} for kind, values in _spaces(designs)), _KNOBS)
    return (
        f"The problem:\n{within(json.dumps(told), _NAMES)}\n\nThe designs, by kind, and the values of knobs:\n{knobs}"
    )


def _spaces(designs: Sequence[Choice]) -> list[tuple[str, dict[str, list[int | bool | str]]]]:
    """Of each kind of designs the values that its knobs take, in order."""
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
    """Designs of one kind have the same knobs; where no knob tells the kind, all are of one."""
    return str(dict(choice.knobs).get(_KIND, ""))


def _mixed(ranking: Sequence[Ranked]) -> list[Ranked]:
    """The first of each kind, then the second of each: some of all kinds, in the order of the ranking."""
    counts: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, each in enumerate(ranking):
        kind = _kind(each.choice)
        turns.append((counts[kind], place))
        counts[kind] += 1
    return [ranking[place] for _, place in sorted(turns)]


def _now(state: State[Memory], ranking: Sequence[Ranked], view: View) -> str:
    situation, memory = state.situation, state.memory
    best = situation.best
    standing = {
        "bottleneck": situation.bottleneck,
        "gap": None if situation.gap is None else round(situation.gap, 4),
        "best": None if best is None else _tried(best),
        "candidates_tried": len(situation.tried),
        "options_open": len(ranking),
    }
    options = map(_open, _mixed(ranking))
    techniques = sorted({step.technique for each in ranking for step in each.choice.steps})
    parts = (
        ("Where the search stands", json.dumps(standing)),
        ("Text of the best design", f"```python\n{within(view.kernel, _KERNEL)}\n```" if view.kernel else "not shown"),
        ("Tried, the latest first", _lines((_tried(each) for each in reversed(situation.tried)), _TRIED)),
        ("Reports of candidates that were stopped, the latest first", _reports(view.rejections)),
        ("What came of each, the latest last", "\n".join(_newest(memory.feedback, _LESSONS)) or "nothing yet"),
        ("Your lessons", "\n".join(_fitting((f"- {each}" for each in memory.lessons), _LESSONS)) or "none yet"),
        ("Techniques that this may call for", _nearest(situation, view)),
        ("Techniques of open options", _lines(techniques, _NAMES)),
        ("Open options, some of each kind, in the order of a statistical model", _lines(options, _OPTIONS)),
    )
    return encodable("\n\n".join(f"## {title}\n{text}" for title, text in parts))


def _steps(choice: Choice) -> str:
    return " + ".join(map(str, choice.steps))[:_FIELD]


def _tried(found: Observation) -> dict[str, object]:
    took = {} if found.microseconds is None else {"us": round(found.microseconds, 3)}
    return {"name": found.choice.name, "steps": _steps(found.choice), "outcome": found.outcome, **took}


def _open(found: Ranked) -> dict[str, object]:
    techniques = list(dict.fromkeys(step.technique for step in found.choice.steps))
    return {"name": found.choice.name, "techniques": techniques, "knobs": dict(found.choice.knobs)}


def _reports(rejections: tuple[Rejection, ...]) -> str:
    told = (f"{each.name} ({each.outcome}): {within(each.report, _ONE_REPORT)}" for each in reversed(rejections))
    return "\n".join(_fitting(told, _REPORTS)) or "none"


def _nearest(situation: Situation, view: View) -> str:
    """Techniques that the bottleneck and the reports speak of, in full."""
    words = " ".join([situation.bottleneck, situation.problem, *(each.report for each in view.rejections[-3:])])
    found = related(view.techniques, words[:_ONE_REPORT], situation.target)[:_NEAREST]
    told = (
        f"### {each.name}\n{each.intent}\nRisk: {each.risk} How it shows: {each.signature}\n{each.text}"
        for each in found
    )
    return "\n".join(_fitting(told, _RELATED)) or "none"


def _lines(values: Iterable[object], most: int) -> str:
    return "\n".join(_fitting((json.dumps(each) for each in values), most)) or "none"


def _fitting(lines: Iterable[str], most: int) -> list[str]:
    """The first lines that fit into so many bytes, and that there are more."""
    kept: list[str] = []
    left = most
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            return [*kept, "[more are left out]"]
        kept.append(line)
    return kept


def _newest(lines: tuple[str, ...], most: int) -> list[str]:
    return list(reversed(_fitting(reversed(lines), most)))
