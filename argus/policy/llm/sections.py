"""Sections of a request: kernels with numbered lines, refusals, resources, the legend of invariants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from argus.core.invariants import INVARIANTS
from argus.policy.llm.texts import truncated
from argus.policy.llm.view import Rejection, Shown

_ID = re.compile(r"\bI([1-9]\d?)\b")
_DIGITS = 4


def numbered(text: str) -> str:
    """The text with the number of each line, as diagnostics name them."""
    return "\n".join(f"{number:4} | {line}" for number, line in enumerate(text.split("\n"), 1))


def fenced(text: str, language: str = "") -> str:
    """The text as a quotation that it cannot end: the fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def legend(texts: Iterable[str], most: int) -> str:
    """One line for each invariant whose id occurs in the texts."""
    wanted = {f"I{found}" for text in texts for found in _ID.findall(text)}
    lines = (f"- {each.id}: {each.title}. {each.statement}" for each in INVARIANTS if each.id in wanted)
    return "\n".join(first_that_fit(lines, most)) or "none occurs"


def shown(found: Shown | None, most: int) -> str:
    """A kernel: outcome, resources, breakdown of time, and its text."""
    if found is None:
        return "none yet"
    lines = [
        f"{found.name}: {found.outcome}",
        *([f"resources: {_numbers(found.resources)}"] if found.resources else []),
        *([f"busy microseconds in the static model: {_numbers(found.breakdown)}"] if found.breakdown else []),
        *([f"limited by: {found.limiting}"] if found.limiting else []),
        fenced(truncated(found.text, most), "python"),
    ]
    return "\n".join(lines)


def refused(found: Rejection, most: int) -> str:
    """A refused candidate: outcome, its numbered text, the rendered diagnostics, and the counterexample.

    most: bytes of each of the three.
    """
    parts = [f"### {found.name} ({found.outcome})"]
    if found.text:
        parts.append(fenced(truncated(numbered(found.text), most)))
    if found.diagnostics:
        said = "\n\n".join(found.diagnostics)
        parts.append(fenced(truncated(said, most)))
    parts.append(f"Counterexample and replayed state, as JSON: {truncated(found.report, most)}")
    return "\n".join(parts)


def as_lines(values: Iterable[object], most: int) -> str:
    """Values as JSON, one a line, as many as fit."""
    return "\n".join(first_that_fit((json.dumps(each) for each in values), most)) or "none"


def listed(lines: Iterable[str], most: int, none: str) -> str:
    """Lines as a list, as many as fit; `none` if there are no lines."""
    return "\n".join(first_that_fit((f"- {each}" for each in lines), most)) or none


def first_that_fit(lines: Iterable[str], most: int) -> list[str]:
    """The first lines that fit into `most` bytes, then a note if there are more."""
    kept: list[str] = []
    left = most
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            return [*kept, "[more are left out]"]
        kept.append(line)
    return kept


def last_that_fit(lines: tuple[str, ...], most: int) -> list[str]:
    """The last lines that fit, in their order."""
    return list(reversed(first_that_fit(reversed(lines), most)))


def titled(parts: Iterable[tuple[str, str]]) -> str:
    """Sections under headings; a section without text is left out."""
    return "\n\n".join(f"## {title}\n{text}" for title, text in parts if text)


def _numbers(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in values.items())


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.{_DIGITS}g}"
