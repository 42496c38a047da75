"""Reports that print as the command line prints them, and that notebooks show: what `argus.verify` returns."""

from __future__ import annotations

from html import escape

from argus.core.diagnostic import Diagnostic
from argus.core.verdict import ProgramReport, Report
from argus.report.diagnostic_text import render_plain
from argus.report.sources import current_directory, read_source
from argus.report.summary import headline, program_lines, report_lines, verdict_word

_COLOURS = {"proved": "#1a7f37", "refuted": "#cf222e", "unknown": "#8250df", "vacuous": "#8250df"}


class ShownReport(Report):
    """A report whose text is that of `argus verify`, with the source lines of its diagnostics."""

    def __str__(self) -> str:
        return report_text(self)

    def __repr__(self) -> str:
        return f"<Report {headline(self)}>"

    def _repr_html_(self) -> str:
        title = f'<b style="color:{_COLOURS[verdict_word(self.verdict)]}">{escape(headline(self))}</b>'
        texts = [*map(_diagnostic_text, self.diagnostics), "\n".join(report_lines(self))]
        return title + "".join(f"<pre>{escape(text)}</pre>" for text in texts)


class ShownProgramReport(ProgramReport):
    """A program's report, with those of its launches, as `argus verify` prints them."""

    def __str__(self) -> str:
        return "\n\n".join([*map(report_text, self.launches), "\n".join(program_lines(self))])

    def __repr__(self) -> str:
        return f"<ProgramReport {next(program_lines(self))}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def report_text(report: Report) -> str:
    """What `argus verify` prints of a kernel, without a final newline. It reads the files that diagnostics point to."""
    diagnostics = "".join(f"{_diagnostic_text(each)}\n\n" for each in report.diagnostics)
    return diagnostics + "\n".join([headline(report), *report_lines(report)])


def _diagnostic_text(diagnostic: Diagnostic) -> str:
    return render_plain(diagnostic, read_source, root=current_directory())
