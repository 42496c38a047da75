"""Prints text, diagnostics and reports to the terminal, in colour, or plain to a file or pipe; flushes each piece."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from attrs import field, frozen
from rich.console import Console
from rich.text import Text

from argus.cli.ansi import print_diagnostic
from argus.core.diagnostic import Diagnostic
from argus.core.verdict import Report
from argus.report.sources import current_directory, read_source
from argus.report.summary import headline, report_lines, verdict_word

_STYLES = {"proved": "bold green", "refuted": "bold red", "unknown": "bold magenta", "vacuous": "bold magenta"}


def _on_stdout() -> Console:
    return Console(file=sys.stdout, highlight=False)


def on_stderr() -> Console:
    """A console on standard error."""
    return Console(file=sys.stderr, highlight=False)


@frozen
class Screen:
    """An output console. Every method raises OSError on a broken pipe or a full disk."""

    console: Console = field(factory=_on_stdout)

    def lines(self, lines: Iterable[str], style: str = "") -> None:
        """Print each line unwrapped: only the terminal may break it."""
        for line in lines:
            if self.console.is_terminal:
                self.console.print(Text(line, style=style), soft_wrap=True)
            else:
                self.console.file.write(f"{line}\n")
        self.console.file.flush()

    def diagnostic(self, diagnostic: Diagnostic) -> None:
        print_diagnostic(diagnostic, read_source, self.console, root=current_directory())
        self.console.file.flush()

    def report(self, report: Report, *, every_invariant: bool = False) -> None:
        """Print the diagnostics of a report, then its verdict, assumptions and findings."""
        for diagnostic in report.diagnostics:
            self.diagnostic(diagnostic)
            self.lines([""])
        self.lines([headline(report)], _STYLES[verdict_word(report.verdict)])
        self.lines(report_lines(report, every_invariant=every_invariant))
