"""Data model of the model's answer. It is untrusted and never executed here.

A proposal names an open option, a technique or knob values, or carries the text of a kernel. It has no field for a
verdict: only the gate decides whether a kernel is proved, and how fast it is.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from attrs import frozen

from argus.core.diagnostic import Diagnostic
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.planner import Choice
from argus.policy.stopping import roi

USUAL_SPEEDUP = 1.1
"""Of a proposal that states none."""
_LEAST = 1e-3
"""Lower bound of a confidence where it is a divisor."""
_WRITING = 2.0
"""Effort of a kernel that is still to be written, relative to a design at hand."""


@frozen
class Option:
    """An open option by name."""

    name: str


@frozen
class Use:
    """Any open option with a technique."""

    technique: str


@frozen
class Kernel:
    """Source text of a new kernel. invariants: the model's claims about it, as text.

    repairs: name of the refused kernel that it repairs. plan: name of the plan that it carries out.
    """

    text: str
    invariants: tuple[str, ...] = ()
    repairs: str = ""
    plan: str = ""

    @property
    def name(self) -> str:
        """A content hash: equal texts have equal names."""
        return f"text-{sha256(self.text.encode('utf-8')).hexdigest()[:12]}"


Knob = int | bool | str


@frozen
class Knobs:
    """Any open option with these knob values, as (name, value)."""

    values: tuple[tuple[str, Knob], ...]

    def fit(self, choice: Choice) -> bool:
        """Whether a choice has all these values, types included: `True` does not match 1."""
        found = {name: (type(value), value) for name, value in choice.knobs}
        return all(found.get(name) == (type(value), value) for name, value in self.values)


@frozen
class Write:
    """A kernel that is still to be written. plan: what to change, in words. invariant: the one that it must keep."""

    plan: str
    invariant: str = ""

    @property
    def name(self) -> str:
        return f"plan-{sha256(self.plan.encode('utf-8')).hexdigest()[:12]}"


Target = Option | Use | Knobs | Kernel | Write
TaskName = Literal["plan", "lower", "repair"]
"""The request that a response answers."""


@frozen
class Proposal:
    """One proposal. confidence: from 0 to 1. needs: techniques that it builds on.

    speedup: expected time of the best so far over its own, if it passes. context: the situation that it is for.
    """

    target: Target
    confidence: float
    reason: str = ""
    needs: tuple[str, ...] = ()
    speedup: float = USUAL_SPEEDUP
    context: str = ""

    def utility(self, gap: float) -> float:
        """Expected return on investment. gap: best time over the speed of light."""
        effort = _WRITING if isinstance(self.target, Write) else 1.0
        return roi(self.speedup, gap, effort, 1 / max(self.confidence, _LEAST))


@frozen
class Reply:
    """A valid answer, proposals by descending confidence.

    lessons: the model's new lessons; empty to keep the old ones. dropped: rejected proposals with reasons. faults:
    errors of earlier answers to the same question. spent: cost of all of them. task, about: the request, and the name
    of the plan or of the refused kernel that it was about.
    """

    proposals: tuple[Proposal, ...]
    lessons: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING
    task: TaskName = "plan"
    about: str = ""


@frozen
class Trouble:
    """A failed question. code, message, help: of the diagnostic. lasting: the failure is permanent.

    task, about: as of a reply.
    """

    code: str
    message: str
    help: str
    lasting: bool
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING
    task: TaskName = "plan"
    about: str = ""

    @property
    def diagnostic(self) -> Diagnostic:
        """The failure as a warning, since the search continues without an answer."""
        return Diagnostic(self.code, "warning", self.message, notes=self.faults, help=self.help)


@frozen
class Faulty:
    """An unusable answer. faults: errors for the model to correct. final: asking again would not help."""

    faults: tuple[str, ...]
    final: bool = False
