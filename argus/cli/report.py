"""`argus report`: writes a search run from the journal as an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.cli.search.page.page import write_report
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.command_result import Outcome
from argus.search.journal import Journal
from argus.search.run import journal_path

SCHEMA = "argus.search-report/1"


@click.command("report")
@click.argument("run", metavar="[RUN]", default="")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), help="Journal file of search runs.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, help="Output file."
)
@json_option
def report(run: str, journal: Path | None, out: Path, as_json: bool) -> Outcome:
    """Write an HTML page about RUN, by default the last one in the journal. The run may be unfinished.

    The page is self-contained: plots, the tree of candidates, and a table of all candidates with the reasons for
    rejection.
    """
    path = journal or journal_path()
    if not path.is_file():
        message = f"there is no journal `{path}`"
        raise ArgusError(Diagnostic("E904", "error", message, help="name it with --journal"))
    with Journal(path) as opened:
        known = opened.runs()
        if not known:
            message = f"`{path}` has no runs"
            raise ArgusError(Diagnostic("E904", "error", message, help="`argus optimize` begins one"))
        story = write_report(opened, run or known[-1].name, out)
    if not as_json:
        Screen().lines([f"wrote {out}: {story.run}, {len(story.candidates):,} candidates"])
    return Outcome(0, {"schema": SCHEMA, "run": story.run, "file": str(out), "candidates": len(story.candidates)})
