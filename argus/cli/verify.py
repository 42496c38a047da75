"""`argus verify`: proves or refutes every kernel of a file."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import click
from attrs import evolve

from argus import __version__
from argus.cli.options import json_option, load_seconds_option, positive_seconds
from argus.cli.screen import Screen
from argus.cli.waiting import waiting
from argus.core.diagnostic import ArgusError
from argus.core.query import NOMINAL_SECONDS, Budget
from argus.core.verdict import Report
from argus.report.command_result import Outcome
from argus.report.files import write_picture, write_sarif
from argus.report.json_document import program_json, report_json
from argus.report.layout_svg import check_ending
from argus.report.summary import program_lines
from argus.runtime.sandbox import Refused, trace_text
from argus.runtime.sandbox.request import TRACING
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.verifier.loader import Exported, load, text_of
from argus.verifier.program import ExportVerifier

REFUTED, OPEN = 1, 2


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@click.option(
    "--solver",
    default="portfolio",
    show_default=True,
    help="z3, cvc5, enumerate, portfolio, all, or a backend.",
)
@click.option(
    "--seconds",
    type=float,
    callback=positive_seconds,
    default=NOMINAL_SECONDS,
    show_default=True,
    help="Time limit per solver query, in seconds.",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write cached answers.")
@click.option(
    "-v",
    "--all-invariants",
    is_flag=True,
    help="List every invariant, including those that do not apply, and why.",
)
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write the diagnostics to FILE as SARIF 2.1.0.")
@click.option("--svg", "picture_file", metavar="FILE", help="Draw the first counterexample's tile to FILE.svg.")
@click.option(
    "--contained",
    is_flag=True,
    help="Run FILE in a process without network or files, and read its kernels as data.",
)
@load_seconds_option
@json_option
def verify(
    file: str,
    solver: str,
    seconds: float,
    no_cache: bool,
    all_invariants: bool,
    sarif_file: str | None,
    picture_file: str | None,
    contained: bool,
    load_seconds: float,
    as_json: bool,
) -> Outcome:
    """Prove or refute every kernel of FILE (or of a module such as argus.kernels.gemm).

    A program is proved launch by launch; each launch may use what earlier launches proved about its tensors.
    """
    if picture_file is not None:
        check_ending(picture_file)
    with waiting(f"loading {file}"):
        exported = _contained(file, load_seconds) if contained else load(file, seconds=load_seconds)
        kernels = [each.trace(seconds=load_seconds) for each in exported]
    asked = ExportVerifier(resolve(solver), Budget.about(seconds), None if no_cache else Cache(), variants=True)
    reports: list[Report] = []
    for each, kernel in zip(exported, kernels, strict=True):
        with waiting(f"verifying {kernel.name} ({kernel.target}) by {solver}"):
            reports.append(asked.report(each, kernel))
        if not as_json:
            Screen().lines([""] if len(reports) > 1 else [])
            Screen().report(reports[-1], every_invariant=all_invariants)
    programs = asked.programs
    notes = [] if as_json else [line for report in programs for line in ("", *program_lines(report))]
    notes += [] if sarif_file is None else [write_sarif(reports, sarif_file, version=__version__)]
    notes += (
        []
        if picture_file is None
        else [write_picture(asked.pictured_kernels(exported, kernels), reports, picture_file)]
    )
    Screen().lines([] if as_json else notes)
    document: dict[str, object] = {"kernels": [report_json(r) for r in reports]}
    document |= {"programs": [program_json(r) for r in programs]} if programs else {}
    return Outcome(_worst([report.exit_code for report in reports]), document)


def _contained(file: str, seconds: float) -> tuple[Exported, ...]:
    """The kernels of a file that runs in a sandbox, alone: it can import Argus and its dependencies only."""
    path, text, kernel = text_of(file)
    # The process starts within its limits, and traces one kernel after the other.
    whole = max(TRACING.wall_seconds, 6 * seconds)
    limits = evolve(TRACING, wall_seconds=whole, cpu_seconds=ceil(whole))
    found = trace_text(text, kernel, limits, str(path), seconds)
    if isinstance(found, Refused):
        raise ArgusError(found.diagnostic)
    return found


def _worst(codes: Sequence[int]) -> int:
    """1 if any kernel is refuted, else 2 if any is not proved, else 0."""
    return next((code for code in (REFUTED, OPEN) if code in codes), 0)
