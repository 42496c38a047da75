"""Builds the request of one question: a cacheable prefix that is constant over a run, then the state of the search.

The order is tools, system, message, as endpoints cache them; cache breakpoints are at the end of the system text and of
the problem text. All texts together have at most `MOST_BYTES` bytes, and no directory of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from argus.policy.llm.roles import Question, Role
from argus.policy.llm.sections import first_that_fit
from argus.policy.llm.settings import Settings
from argus.policy.llm.texts import encodable, truncated

MOST_BYTES = 96_000
_NOW = 52_000
_FAULTS = 4_000
_CACHED = {"cache_control": {"type": "ephemeral"}}


def request(settings: Settings, role: Role, asked: Question, faults: tuple[str, ...] = ()) -> dict[str, object]:
    """The body of a Messages API call, as a dict. faults: errors of the last answer to this question."""
    tool = role.tool
    chosen = {"type": "tool", "name": tool.name, "disable_parallel_tool_use": True}
    free = {"type": "auto", "disable_parallel_tool_use": True}
    effort: dict[str, object] = {} if settings.effort is None else {"output_config": {"effort": settings.effort}}
    system = _sent(role.system(asked), asked)
    return {
        "model": settings.model,
        "max_tokens": settings.max_tokens,
        "tools": [{"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}],
        "tool_choice": chosen if settings.forced else free,
        "system": [{"type": "text", "text": system, **_CACHED}],
        "messages": [{"role": "user", "content": list(_message(role, asked, faults))}],
        **effort,
    }


def size(fields: dict[str, object]) -> int:
    """Size of a request in bytes: an upper bound of its tokens."""
    return len(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def _message(role: Role, asked: Question, faults: tuple[str, ...]) -> Iterable[dict[str, object]]:
    yield {"type": "text", "text": _sent(role.problem(asked), asked), **_CACHED}
    yield {"type": "text", "text": truncated(_sent(role.now(asked), asked), _NOW)}
    if faults:
        lines = "\n".join(first_that_fit((f"- {each}" for each in faults), _FAULTS))
        again = f"Your last answer could not be used:\n{lines}\nCorrect it and call `{role.tool.name}` again."
        yield {"type": "text", "text": _sent(again, asked)}


def _sent(text: str, asked: Question) -> str:
    """The text without the directories of this machine, longest first, and without what UTF-8 cannot encode."""
    for folder in sorted(asked.view.folders, key=len, reverse=True):
        text = text.replace(f"{folder.rstrip('/')}/", "")
    return encodable(text)
