"""The body of an endpoint's answer: the input of the tool that it calls, and what it says it cost."""

from __future__ import annotations

import json
from typing import NoReturn, cast

from attrs import frozen

from argus.policy.llm.budget import Usage
from argus.policy.llm.card import TOOL
from argus.policy.llm.texts import sentence

_MOST_TOKENS = 10**9


@frozen
class Usable:
    """data: of the tool's input, not looked at yet. usage: None where the endpoint does not tell."""

    data: object
    usage: Usage | None


@frozen
class Unusable:
    """fault: in words for the model. final: asking again would end likewise."""

    fault: str
    usage: Usage | None
    final: bool = False


def told(body: bytes) -> Usable | Unusable:
    """What a body says. Raises nothing, whatever it is."""
    try:
        message = json.loads(body, parse_constant=_refused)
    except (ValueError, RecursionError):
        return Unusable("the answer is no JSON", None)
    if not isinstance(message, dict):
        return Unusable("the answer is no message", None)
    fields = cast("dict[str, object]", message)
    usage = _usage(fields.get("usage"))
    match fields.get("stop_reason"):
        case "max_tokens":
            return Unusable("the answer was cut off for its length: propose less, and write shorter reasons", usage)
        case "refusal":
            return Unusable("the model declined to answer", usage, final=True)
        case "model_context_window_exceeded":
            return Unusable("the request is longer than the model reads", usage, final=True)
        case _:
            return _called(fields.get("content"), usage)


def _called(content: object, usage: Usage | None) -> Usable | Unusable:
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, object]", each) for each in blocks if isinstance(each, dict)]
    calls = [each for each in objects if each.get("type") == "tool_use"]
    names = [each.get("name") for each in calls]
    if not calls:
        return Unusable(f"the answer calls no tool, expected one call of `{TOOL}`", usage)
    if names != [TOOL]:
        told = ", ".join(sentence(str(name), 40) for name in names[:4])
        return Unusable(f"the answer calls {told}, expected one call of `{TOOL}`", usage)
    return Usable(calls[0].get("input"), usage)


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
