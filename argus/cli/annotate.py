"""`argus annotate`: inserts proved claims into the source text of a kernel file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from attrs import asdict

from argus.cli.screen import Screen, on_stderr
from argus.core.query import NOMINAL_SECONDS, Budget
from argus.core.verdict import Proved
from argus.report.atomic_write import write_whole
from argus.report.command_result import Outcome
from argus.report.json_document import report_json
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.verifier.annotate import Annotated, annotate

SCHEMA = "argus.annotated/1"


@click.command(name="annotate")
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--write", is_flag=True, help="Overwrite the file.")
@click.option("-o", "--out", metavar="PATH", help="Write to PATH instead.")
@click.option("--solver", default="portfolio", show_default=True, help="z3, cvc5, enumerate, portfolio, or a backend.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=NOMINAL_SECONDS,
    show_default=True,
    help="Time limit per solver query, in seconds.",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write cached answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def annotate_command(
    file: str, write: bool, out: str | None, solver: str, seconds: float, no_cache: bool, as_json: bool
) -> Outcome:
    """Insert the claims that hold for the kernels of FILE into its text, and print the result.

    Prints and writes nothing unless the kernels with the new claims are proved.
    """
    if write and out is not None:
        raise click.UsageError("--write and --out exclude each other")
    cache = None if no_cache else Cache()
    made = annotate(file, solver=resolve(solver), budget=Budget.about(seconds), cache=cache)
    note = _write(made, made.path if write else None if out is None else Path(out)) if made.proved else ""
    if not as_json:
        _print(made, note, text=not write and out is None)
    codes = [report.exit_code for report in made.reports]
    return Outcome(1 if 1 in codes else max(codes, default=0), document(made))


def document(made: Annotated) -> dict[str, object]:
    """The result in the schema `argus.annotated/1`; its field `text` is the new file's text."""
    return {
        "schema": SCHEMA,
        "file": str(made.path),
        "added": [asdict(each) for each in made.added],
        "left_out": list(made.left_out),
        "text": made.after.decode("utf-8", "replace"),
        "kernels": [report_json(each) for each in made.reports],
    }


def _write(made: Annotated, path: Path | None) -> str:
    """Write the annotated text and return a note about it; empty if there was nothing to write.

    Raises ArgusError (E302) if the file cannot be written. Follows symbolic links and preserves the file's mode.
    """
    if path is None or (path == made.path and made.after == made.before):
        return ""
    target = path.resolve()
    before = target.read_bytes() if target.is_file() else None
    mode = target.stat().st_mode if target.exists() else None
    write_whole(target, made.after)
    if mode is not None:
        target.chmod(mode)
    replaced = before is not None and before not in (made.before, made.after)
    return f"wrote {path}" + (", replacing other contents" if replaced else "")


def _print(made: Annotated, note: str, *, text: bool) -> None:
    notes = Screen(on_stderr())
    for report in made.reports:
        if not isinstance(report.verdict, Proved):
            notes.report(report)
    notes.lines(annotated_lines(made))
    notes.lines([f"# {note}"] if note else [])
    if text and made.proved:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.after)


def annotated_lines(made: Annotated) -> Iterator[str]:
    """One comment line for each added or rejected claim, then a summary."""
    yield from (f"# left out: {each}" for each in made.left_out)
    if not made.proved:
        yield "# nothing is written: the kernel with the suggested claims is not proved"
        return
    yield from (f"# line {each.line}: {each.code}" for each in made.added)
    yield f"# added {len(made.added)} lines; everything is proved" if made.added else "# there is nothing to add"
    open_ = sorted({name for report in made.reports for name in report.uncovered})
    if open_:
        yield f"# no claim was found about {', '.join(open_)}"
