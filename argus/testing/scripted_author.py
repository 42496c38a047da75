"""A scripted player of a model's roles: an author who plans, writes a kernel with a fault, and mends what is shown.

It edits only text that a request quotes, so that what it needs must be in the request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import define, field, frozen

from argus.testing.messages import Answer, Asked, call

_NUMBERED = re.compile(r"^ {0,3}\d+ \| ?(.*)$")
_BEST = re.compile(r"## The best kernel\n.*?```python\n(.*?)\n```", re.DOTALL)
_RESIDENT = re.compile(r"## The best kernel\n.*?limited by: [^;]+; (\d+) blocks of", re.DOTALL)


@frozen
class Fault:
    """A fault of a draft: `right` is written as `wrong`. code: of the diagnostic that must show it."""

    right: str
    wrong: str
    code: str


@frozen
class Step:
    """One kernel of a journey. plan: in words. text: the kernel; empty to edit the best kernel by `edit`.

    fault: of the first draft; None for a draft without one. edit: a text of the best kernel, and what replaces it, with
    `{blocks}` for the number of resident blocks that the request states.
    """

    plan: str
    text: str = ""
    fault: Fault | None = None
    edit: tuple[str, str] = ("", "")


@define
class Author:
    """Answers requests by the steps in order, and then proposes what is open. mended: codes of the faults mended."""

    steps: Sequence[Step]
    mended: list[str] = field(factory=list[str])
    _next: int = 0

    def __call__(self, asked: Asked) -> Answer:
        now = str(asked.body["messages"][0]["content"][1]["text"])
        if asked.body["tools"][0]["name"] == "propose":
            return self._plan()
        return self._mend(now) if now.startswith("## Your kernel was refused") else self._write(now)

    def _plan(self) -> Answer:
        if self._next >= len(self.steps):
            return call({"proposals": []})
        step = self.steps[self._next]
        proposal = {"write": step.plan, "confidence": 0.9, "reason": step.plan, "speedup": 2.0}
        return call({"proposals": [proposal], "lessons": [f"{self._next} of {len(self.steps)} steps are done"]})

    def _write(self, now: str) -> Answer:
        step = self.steps[self._next]
        text = step.text or _edited(now, step.edit)
        draft = text if step.fault is None else _replaced(text, step.fault.right, step.fault.wrong)
        if step.fault is None:
            self._next += 1
        return call({"kernel": draft, "confidence": 0.7, "reason": step.plan}, "write_kernel")

    def _mend(self, now: str) -> Answer:
        fault = self.steps[self._next].fault
        assert fault is not None, "a kernel without a known fault was refused"
        assert f"[{fault.code}]" in now, f"the request does not show {fault.code}"
        text = _replaced(quoted_kernel(now), fault.wrong, fault.right)
        self.mended.append(fault.code)
        self._next += 1
        answer = {
            "kernel": text,
            "confidence": 0.9,
            "reason": f"mends {fault.code}",
            "lesson": f"{fault.code} was mended",
        }
        return call(answer, "write_kernel")


def quoted_kernel(now: str) -> str:
    """The text of the refused kernel that a request for repair quotes, without line numbers."""
    block = now.split("```\n")[1]
    found = [_NUMBERED.match(line) for line in block.splitlines()]
    assert all(found), "a line of the kernel has no number"
    return "\n".join(each[1] for each in found if each)


def _edited(now: str, edit: tuple[str, str]) -> str:
    """The best kernel that a request shows, with an edit."""
    best, resident = _BEST.search(now), _RESIDENT.search(now)
    assert best is not None, "the request shows no best kernel"
    blocks = "" if resident is None else resident[1]
    return _replaced(best[1], edit[0], edit[1].format(blocks=blocks))


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{text.count(old)} places of {old!r}, expected one"
    return text.replace(old, new)
