"""Validates the input of the model's tool call strictly: drops malformed proposals and those for no open option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast, get_origin

import attrs
from attrs import frozen
from cattrs import ClassValidationError, Converter, transform_error
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from argus.policy.llm.memory import MOST_LESSONS
from argus.policy.llm.reply import (
    USUAL_SPEEDUP,
    Faulty,
    Kernel,
    Knob,
    Knobs,
    Option,
    Proposal,
    Reply,
    Target,
    Use,
    Write,
)
from argus.policy.llm.texts import invisible_characters, printable_line
from argus.policy.planner import Choice

MOST_PROPOSALS = 16
REASON = 400
LESSON = 300
"""Most characters of a reason and of a lesson."""
KERNEL_BYTES = 64_000
_INVARIANTS = 24
_FASTEST = 1000.0
_PLAN = 2_000


# The schema of the model's JSON. Fields without a default are required; unknown fields are an error.


@frozen
class _Proposal:
    confidence: float
    reason: str
    option: str | None = None
    technique: str | None = None
    knobs: dict[str, Knob] | None = None
    kernel: str | None = None
    invariants: tuple[str, ...] = ()
    write: str | None = None
    invariant: str = ""
    context: str = ""
    speedup: float | None = None
    needs: tuple[str, ...] = ()


@frozen
class _Answer:
    proposals: tuple[_Proposal, ...]
    lessons: tuple[str, ...] = ()


@frozen
class _Written:
    kernel: str
    reason: str
    confidence: float
    invariants: tuple[str, ...] = ()
    lesson: str = ""


def _exact(kind: type) -> Any:  # noqa: ANN401 reason: cattrs takes hooks of any type
    def hook(value: object, _: object) -> object:
        if type(value) is not kind:
            raise TypeError(f"expected {_WORDS[kind]}, found {_word(value)}")
        return value

    return hook


def _number(value: object, _: object) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"expected a number, found {_word(value)}")
    found = cast(float, value)
    # Compared before conversion, which overflows for a huge integer. NaN fails the comparison.
    if not 0 <= found <= 1:
        raise ValueError("expected a number from 0 to 1")
    return float(found)


def _speedup(value: object, _: object) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 < cast(float, value) <= _FASTEST:
        raise TypeError(f"expected a speedup above 0 and up to {_FASTEST:g}, found {_word(value)}")
    return float(cast(float, value))


_WORDS: Mapping[type, str] = {
    str: "text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _word(value: object) -> str:
    return _WORDS.get(type(value), "something else")


def _strict() -> Converter:
    """A converter without implicit conversions: a number is not accepted as text, nor text as a list."""
    found = Converter(forbid_extra_keys=True)
    found.register_structure_hook(str, _exact(str))
    found.register_structure_hook(float, _number)
    found.register_structure_hook(float | None, _speedup)
    found.register_structure_hook(dict[str, Knob] | None, _knobs)
    found.register_structure_hook(str | None, lambda value, _: None if value is None else _exact(str)(value, str))

    def lists(kind: Any, converter: Converter) -> Any:  # noqa: ANN401 reason: as cattrs has it
        return _only(list, homogenous_tuple_structure_factory(kind, converter))

    def objects(kind: Any, converter: Converter) -> Any:  # noqa: ANN401 reason: as cattrs has it
        return _only(dict, make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True))

    found.register_structure_hook_factory(lambda kind: get_origin(kind) is tuple, lists)
    found.register_structure_hook_factory(attrs.has, objects)
    return found


def _knobs(value: object, _: object) -> dict[str, Knob] | None:
    if value is None:
        return None
    values = cast("dict[str, Knob]", _exact(dict)(value, dict))
    odd = [printable_line(name, 40) for name, each in values.items() if type(each) not in (int, bool, str)]
    if odd:
        raise TypeError(f"expected a whole number, a truth value or text, found something else for {', '.join(odd)}")
    return values


def _only(kind: type, hook: Any) -> Any:  # noqa: ANN401 reason: as cattrs has it
    def checked(value: object, target: object) -> object:
        return hook(_exact(kind)(value, kind), target)

    return checked


_READER = _strict()


def parse_proposals(data: object, choices: Sequence[Choice]) -> Reply | Faulty:
    """Parse the input of a tool call. choices: the open ones.

    Drops proposals that match no open choice. Returns Faulty for a malformed answer, or if no proposal is left.
    """
    if not isinstance(data, dict):
        return Faulty((f"the input of the tool is {_word(data)}, expected an object",))
    try:
        answer = _READER.structure(data, _Answer)
    except (ClassValidationError, TypeError, ValueError) as problem:
        return Faulty(tuple(printable_line(each, REASON) for each in _error_messages(problem)[:8]))
    return _validated(answer, choices)


def _error_messages(problem: Exception) -> list[str]:
    return (
        transform_error(problem, format_exception=_format_error)
        if isinstance(problem, ClassValidationError)
        else [str(problem)]
    )


def _format_error(problem: BaseException, _: object) -> str:
    """An error message in terms of the answer's JSON, not of this code."""
    match problem:
        case KeyError():
            return f"the field {problem} is missing"
        case ForbiddenExtraKeysError(extra_fields=fields):
            return f"unknown fields {', '.join(sorted(map(str, fields)))}"
        case _:
            return str(problem)


def parse_kernel(
    data: object, *, repairs: str = "", plan: str = "", known: AbstractSet[str] = frozenset()
) -> Reply | Faulty:
    """Parse the input of a tool call that writes one kernel.

    repairs, plan: as of the kernel. known: names of kernels that have been written before; they are no answer.
    """
    if not isinstance(data, dict):
        return Faulty((f"the input of the tool is {_word(data)}, expected an object",))
    try:
        answer = _READER.structure(data, _Written)
    except (ClassValidationError, TypeError, ValueError) as problem:
        return Faulty(tuple(printable_line(each, REASON) for each in _error_messages(problem)[:8]))
    found = _kernel(answer.kernel, answer.invariants)
    if isinstance(found, str):
        return Faulty((found,))
    if found.name in known:
        return Faulty((f"its kernel is `{found.name}` again, which was judged before: change it",))
    lesson = printable_line(answer.lesson, LESSON)
    kernel = attrs.evolve(found, repairs=repairs, plan=plan)
    proposal = Proposal(kernel, answer.confidence, printable_line(answer.reason, REASON))
    return Reply((proposal,), (lesson,) if lesson else ())


def _validated(answer: _Answer, choices: Sequence[Choice]) -> Reply | Faulty:
    techniques = {step.technique for each in choices for step in each.steps}
    kept: dict[Target, Proposal] = {}
    dropped: list[str] = []
    for place, each in enumerate(answer.proposals):
        target = _target(each, choices, techniques)
        if isinstance(target, str):
            dropped.append(f"proposal {place}: {target}")
        elif target in kept:
            dropped.append(f"proposal {place}: it repeats an earlier one")
        elif len(kept) == MOST_PROPOSALS:
            dropped.append(f"proposal {place}: at most {MOST_PROPOSALS} are read")
        else:
            needs = tuple(name for name in dict.fromkeys(each.needs) if name in techniques)
            reason, context = printable_line(each.reason, REASON), printable_line(each.context, REASON)
            speedup = USUAL_SPEEDUP if each.speedup is None else each.speedup
            kept[target] = Proposal(target, each.confidence, reason, needs, speedup, context)
    if not kept:
        return Faulty(tuple(dropped[:8]) or ("it proposes nothing, expected at least one proposal",))
    ranked = sorted(kept.values(), key=lambda each: -each.confidence)
    lessons = tuple(line for each in answer.lessons[:MOST_LESSONS] if (line := printable_line(each, LESSON)))
    return Reply(tuple(ranked), lessons, tuple(dropped[:MOST_PROPOSALS]))


def _target(found: _Proposal, choices: Sequence[Choice], techniques: AbstractSet[str]) -> Target | str:
    """The proposal's target, or an error message."""
    match found:
        case _Proposal(option=None, technique=None, knobs=None, kernel=None, write=str(plan)):
            told = printable_line(plan, _PLAN)
            return Write(told, printable_line(found.invariant, LESSON)) if told else "it plans nothing"
        case _Proposal(option=str(name), technique=None, knobs=None, kernel=None, write=None):
            known = any(each.name == name for each in choices)
            return Option(name) if known else f"`{printable_line(name, 80)}` is not an open option"
        case _Proposal(option=None, technique=str(name), knobs=None, kernel=None, write=None):
            return (
                Use(name)
                if name in techniques
                else f"`{printable_line(name, 80)}` is not a technique of an open option"
            )
        case _Proposal(option=None, technique=None, knobs=dict(values), kernel=None, write=None):
            knobs = Knobs(tuple(sorted(values.items())))
            fits = any(map(knobs.fit, choices))
            return knobs if fits else f"no open option has {printable_line(str(dict(knobs.values)), 200)}"
        case _Proposal(option=None, technique=None, knobs=None, kernel=str(text), write=None):
            return _kernel(text, found.invariants)
        case _:
            return "expected exactly one of `option`, `technique`, `knobs`, `kernel` and `write`"


def _kernel(text: str, invariants: tuple[str, ...]) -> Kernel | str:
    source = text.replace("\r\n", "\n")
    size = len(source.encode("utf-8", "replace"))
    if size > KERNEL_BYTES:
        return f"its kernel has {size:,} bytes, expected at most {KERNEL_BYTES:,}"
    if odd := invisible_characters(source):
        return f"its kernel has invisible characters: {', '.join(odd[:8])}"
    if not source.strip():
        return "its kernel is empty"
    claims = tuple(line for each in invariants[:_INVARIANTS] if (line := printable_line(each, LESSON)))
    return Kernel(source, claims)
