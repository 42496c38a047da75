"""What a model proposes, as data. Nothing of it is believed, nothing is run.

A proposal names an open option, a technique or values of knobs, or carries the text of a kernel. There is no field for
a verdict: that a kernel is proved, or fast, is found by the gate and nowhere else.
"""

from __future__ import annotations

from hashlib import sha256

from attrs import frozen

from argus.core.diagnostic import Diagnostic
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.planner import Choice


@frozen
class Option:
    """One open option."""

    name: str


@frozen
class Use:
    """Any open option that has a technique."""

    technique: str


@frozen
class Kernel:
    """The text of a kernel in the language of Argus. invariants: what the model claims of it, in words."""

    text: str
    invariants: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Equal texts have equal names."""
        return f"text-{sha256(self.text.encode('utf-8')).hexdigest()[:12]}"


Knob = int | bool | str


@frozen
class Knobs:
    """Any open option that has these values, by name of the knob."""

    values: tuple[tuple[str, Knob], ...]

    def fit(self, choice: Choice) -> bool:
        """A truth is no number: `True` is not 1."""
        found = {name: (type(value), value) for name, value in choice.knobs}
        return all(found.get(name) == (type(value), value) for name, value in self.values)


Target = Option | Use | Knobs | Kernel


@frozen
class Proposal:
    """confidence: from 0 to 1. needs: techniques that it builds on."""

    target: Target
    confidence: float
    reason: str = ""
    needs: tuple[str, ...] = ()


@frozen
class Reply:
    """An answer of use, the most confident proposals first.

    lessons: what the model wants to remember; none if it leaves what it remembers as it is. dropped: what was left out
    of its answer, and why. faults: what was wrong with earlier answers to the same question. spent: by all of them.
    """

    proposals: tuple[Proposal, ...]
    lessons: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING


@frozen
class Trouble:
    """No answer. code, message, help: of the catalogue. lasting: another question would meet the same."""

    code: str
    message: str
    help: str
    lasting: bool
    faults: tuple[str, ...] = ()
    spent: Spent = NOTHING

    @property
    def diagnostic(self) -> Diagnostic:
        """A warning, for a search goes on without an answer."""
        return Diagnostic(self.code, "warning", self.message, notes=self.faults, help=self.help)


@frozen
class Faulty:
    """An answer of no use: what the model is told to mend. final: to ask again would end likewise."""

    faults: tuple[str, ...]
    final: bool = False
