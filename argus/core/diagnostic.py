"""Diagnostics as data: code, severity, message, source locations and repair; `argus.report` renders them."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.span import NOWHERE, Span

Severity = Literal["error", "warning", "unknown", "note"]


@frozen
class Label:
    """A remark on one location in the user's source."""

    span: Span
    text: str


@frozen
class Diagnostic:
    """One diagnostic.

    code: an invariant's id (`I5`) or an error code (`E102`).
    message: names the object, what was expected and what was found; lower case, no final period.
    primary: the faulty location and what is wrong there; secondary: locations that explain why.
    facts: named values of the witness, in reading order (`("launch", "M=1, N=1, K=40")`).
    notes: further sentences. help: the repair. kernel: the kernel's name, if there is one.
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
    """An error in the user's input, described by `diagnostic`."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic

    def __reduce__(self) -> tuple[object, ...]:
        """By its diagnostic, so that another process can raise it."""
        return type(self), (self.diagnostic,)


class InternalError(Exception):
    """A bug in Argus: two of its results contradict each other. Never the user's fault."""
