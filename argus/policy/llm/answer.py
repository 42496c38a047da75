"""The body of an endpoint's answer: the input of the tool that it calls, and what it says it cost."""

from __future__ import annotations

import json
from typing import NoReturn, cast

from attrs import frozen

from argus.policy.llm.budget import Usage
from argus.policy.llm.card import TOOL
from argus.policy.llm.reply import Faulty
from argus.policy.llm.texts import sentence

_MOST_TOKENS = 10**9


@frozen
class Usable:
    """data: of the tool's input, not looked at yet."""

    data: object


@frozen
class Answer:
    """usage: None where the endpoint does not tell."""

    found: Usable | Faulty
    usage: Usage | None = None


def told(body: bytes) -> Answer:
    """What a body says. Raises nothing, whatever it is."""
    try:
        message = json.loads(body, parse_constant=_refused)
    except (ValueError, RecursionError):
        return Answer(Faulty(("the answer is no JSON",)))
    if not isinstance(message, dict):
        return Answer(Faulty(("the answer is no message",)))
    fields = cast("dict[str, object]", message)
    usage = _usage(fields.get("usage"))
    return Answer(_found(fields), usage)


def _found(fields: dict[str, object]) -> Usable | Faulty:
    match fields.get("stop_reason"):
        case "max_tokens":
            return Faulty(("the answer was cut off for its length: propose less, and write shorter reasons",))
        case "refusal":
            return Faulty(("the model declined to answer",), final=True)
        case "model_context_window_exceeded":
            return Faulty(("the request is longer than the model reads",), final=True)
        case _:
            return _called(fields.get("content"))


def _called(content: object) -> Usable | Faulty:
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, object]", each) for each in blocks if isinstance(each, dict)]
    calls = [each for each in objects if each.get("type") == "tool_use"]
    names = [each.get("name") for each in calls]
    if not calls:
        return Faulty((f"the answer calls no tool, expected one call of `{TOOL}`",))
    if names != [TOOL]:
        called = ", ".join(sentence(name, 40) if isinstance(name, str) else "no name" for name in names[:4])
        return Faulty((f"the answer calls {called}, expected one call of `{TOOL}`",))
    return Usable(calls[0].get("input"))


def _usage(found: object) -> Usage | None:
    """Counts of tokens; None where one is missing or is no count."""
    if not isinstance(found, dict):
        return None
    fields = cast("dict[str, object]", found)
    counts = (
        fields.get("input_tokens"),
        fields.get("output_tokens"),
        # An endpoint without a cache leaves these out or gives null.
        fields.get("cache_creation_input_tokens") or 0,
        fields.get("cache_read_input_tokens") or 0,
    )
    kept = [each for each in counts if type(each) is int and 0 <= each <= _MOST_TOKENS]
    return Usage(*kept) if len(kept) == len(counts) else None


def _refused(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is no JSON")
