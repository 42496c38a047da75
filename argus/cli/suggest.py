"""`argus suggest`: proposes claims for the kernels of a file, as lines to paste."""

from __future__ import annotations

from collections.abc import Iterator

import click

from argus.cli.screen import Screen
from argus.core.query import NOMINAL_SECONDS, Budget
from argus.report.command_result import Outcome
from argus.report.sources import current_directory
from argus.solvers.choice import resolve
from argus.verifier.loader import load
from argus.verifier.suggest import Suggestion, Suggestions, suggest_invariants
from argus.verifier.suggest.data import suggestions_json

SCHEMA = "argus.suggestions/1"
_OPEN = 2


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option("--solver", default="portfolio", show_default=True, help="z3, cvc5, enumerate, portfolio, or a backend.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=NOMINAL_SECONDS,
    show_default=True,
    help="Time limit per solver query, in seconds.",
)
@click.option("-v", "--everything", is_flag=True, help="Also list claims implied by others, and unproved ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def suggest(file: str, solver: str, seconds: float, everything: bool, as_json: bool) -> Outcome:
    """Propose claims for every kernel of FILE: each is proved and rules out some mutants of the kernel."""
    backend = resolve(solver)
    made: list[Suggestions] = []
    for each in load(file):
        made.append(suggest_invariants(each.trace(), solver=backend, budget=Budget.about(seconds)))
        if not as_json:
            Screen().lines([""] if len(made) > 1 else [])
            Screen().lines(suggestion_lines(made[-1], everything=everything))
    document: dict[str, object] = {"schema": SCHEMA, "kernels": [suggestions_json(each) for each in made]}
    return Outcome(0 if all(each.found or each.formulas for each in made) else _OPEN, document)


def suggestion_lines(made: Suggestions, *, everything: bool) -> Iterator[str]:
    """For each claim a comment with its place and how many mutants it rules out, then the line itself."""
    yield f"# {made.kernel} ({made.target}): {len(made.found)} of {made.tried} candidates"
    for each in made.found:
        yield from _lines(each, made)
    for each in made.formulas:
        yield f"# {each.place}; proved without other claims"
        yield each.code
    if everything:
        yield from _section("implied by these", made.implied, made)
        yield from _section("not refuted, not proved", made.open, made)
    against = f": {made.reason}" if made.reason else ""
    yield f"# with these claims the kernel is {made.verdict}{against}"


def _section(title: str, listed: tuple[Suggestion, ...], made: Suggestions) -> Iterator[str]:
    if listed:
        yield f"# {title}:"
    for each in listed:
        yield from _lines(each, made)


def _lines(each: Suggestion, made: Suggestions) -> Iterator[str]:
    place = each.place.replace(f"{current_directory()}/", "")
    finds = f"; excludes {each.excludes} of {made.mistakes} mistakes" if each.kind != "tag" else ""
    yield f"# {place}{finds}{f'; {each.reason}' if each.reason else ''}"
    yield each.code
