"""Errors as data: what is said, where, and how to repair it. Rendering is elsewhere."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.span import NOWHERE, Span

Severity = Literal["error", "warning", "unknown", "note"]


@frozen
class Label:
    """A remark on one place of the user's source."""

    span: Span
    text: str


@frozen
class Diagnostic:
    """One report.

    code: an invariant's id (`I5`) or a code of the catalogue (`E102`).
    message: names the thing, with what was expected and what was found; lower case, no final period.
    primary: the place that is wrong and what is wrong there; secondary: places that explain why.
    facts: named values of the witness, in reading order (`("launch", "M=1, N=1, K=40")`).
    notes: further sentences. help: the repair. kernel: the kernel's name, if one is concerned.
    """

    code: str
    severity: Severity
    message: str
    primary: Label = Label(NOWHERE, "")
    secondary: tuple[Label, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    kernel: str = ""

    @property
    def page(self) -> str:
        """The documentation page of the code, relative to the project's root."""
        if self.code.startswith("I"):
            return f"docs/invariants/{self.code[0]}{int(self.code[1:]):02}.md"
        return f"docs/errors/{self.code}.md"


class ArgusError(Exception):
    """The user's input is at fault, and the diagnostic says how."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic


class InternalError(Exception):
    """Argus contradicts itself: a bug of ours, never the user's."""
