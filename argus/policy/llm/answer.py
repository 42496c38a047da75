"""Parses the body of a Messages API answer: the input of the tool call, and the token usage."""

from __future__ import annotations

import json
from typing import NoReturn, cast

from attrs import frozen

from argus.policy.llm.budget import Usage
from argus.policy.llm.instructions import TOOL
from argus.policy.llm.reply import Faulty
from argus.policy.llm.texts import printable_line

_MOST_TOKENS = 10**9


@frozen
class ToolInput:
    """Input of the tool call. data: JSON value, not validated yet."""

    data: object


@frozen
class Answer:
    """A parsed body. usage: None if the endpoint does not report it."""

    found: ToolInput | Faulty
    usage: Usage | None = None


def parse_answer(body: bytes, tool: str = TOOL) -> Answer:
    """Parse a body. tool: that must be called. Raises nothing, whatever the bytes."""
    try:
        message = json.loads(body, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return Answer(Faulty(("the answer is not JSON",)))
    if not isinstance(message, dict):
        return Answer(Faulty(("the answer is not a JSON object",)))
    fields = cast("dict[str, object]", message)
    usage = _usage(fields.get("usage"))
    return Answer(_found(fields, tool), usage)


def _found(fields: dict[str, object], tool: str) -> ToolInput | Faulty:
    match fields.get("stop_reason"):
        case "max_tokens":
            return Faulty(("the answer was cut off at the token limit: propose less, and write shorter reasons",))
        case "refusal":
            return Faulty(("the model declined to answer",), final=True)
        case "model_context_window_exceeded":
            return Faulty(("the request exceeds the model's context window",), final=True)
        case _:
            return _tool_input(fields.get("content"), tool)


def _tool_input(content: object, tool: str) -> ToolInput | Faulty:
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, object]", each) for each in blocks if isinstance(each, dict)]
    calls = [each for each in objects if each.get("type") == "tool_use"]
    names = [each.get("name") for each in calls]
    if not calls:
        return Faulty((f"the answer calls no tool, expected one call of `{tool}`",))
    if names != [tool]:
        called = ", ".join(printable_line(name, 40) if isinstance(name, str) else "no name" for name in names[:4])
        return Faulty((f"the answer calls {called}, expected one call of `{tool}`",))
    return ToolInput(calls[0].get("input"))


def _usage(found: object) -> Usage | None:
    """Token counts; None if one is missing or malformed."""
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


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is not JSON")
