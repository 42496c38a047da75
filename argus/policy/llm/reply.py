"""Data model of the model's answer. It is untrusted and never executed here.

A proposal names an open option, a technique or knob values, or carries the text of a kernel. It has no field for a
verdict: only the gate decides whether a kernel is proved, and how fast it is.
"""

from __future__ import annotations

from hashlib import sha256

from attrs import frozen

from argus.core.diagnostic import Diagnostic
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.planner import Choice


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
    """Source text of a new kernel. invariants: the model's claims about it, as text."""

    text: str
    invariants: tuple[str, ...] = ()

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


Target = Option | Use | Knobs | Kernel


@frozen
class Proposal:
    """One proposal. confidence: from 0 to 1. needs: techniques that it builds on."""

    target: Target
    confidence: float
    reason: str = ""
    needs: tuple[str, ...] = ()


@frozen
class Reply:
    """A valid answer, proposals by descending confidence.

    lessons: the model's new lessons; empty to keep the old ones. dropped: rejected proposals with reasons. faults:
    errors of earlier answers to the same question. spent: cost of all of them.
    """

    proposals: tuple[Proposal, ...]
    lessons: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING


@frozen
class Trouble:
    """A failed question. code, message, help: of the diagnostic. lasting: the failure is permanent."""

    code: str
    message: str
    help: str
    lasting: bool
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING

    @property
    def diagnostic(self) -> Diagnostic:
        """The failure as a warning, since the search continues without an answer."""
        return Diagnostic(self.code, "warning", self.message, notes=self.faults, help=self.help)


@frozen
class Faulty:
    """An unusable answer. faults: errors for the model to correct. final: asking again would not help."""

    faults: tuple[str, ...]
    final: bool = False
