"""`argus certify`: re-checks every claim of a certificate from scratch."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from attrs import asdict

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.cli.search.page.record import check_report
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.query import NOMINAL_SECONDS, Budget
from argus.core.span import NOWHERE
from argus.report.command_result import Outcome
from argus.search.certificates.certificate import Certificate, open_certificate
from argus.search.certificates.check import check_certificate
from argus.search.certificates.check_result import Check
from argus.search.certificates.check_steps import CheckOptions
from argus.solvers.choice import resolve
from argus.verifier.limits import time_limit

SCHEMA = "argus.certify/1"
WRONG = 1


@click.command("certify")
@click.argument("place", metavar="FOLDER|FILE", type=click.Path(path_type=Path))
@click.option("--solver", default="portfolio", show_default=True, help="Solver, as for `argus verify`.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=NOMINAL_SECONDS,
    show_default=True,
    help="Time limit per solver query, in seconds.",
)
@click.option(
    "--longest",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=900.0,
    show_default=True,
    help="Time limit of the whole check, in seconds.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the test inputs; random by default.")
@json_option
def certify(place: Path, solver: str, seconds: float, longest: float, seed: int | None, as_json: bool) -> Outcome:
    """Re-check the output of `argus optimize --out` from scratch; exit code 1 if any claim is wrong.

    The kernel is parsed, proved again without cached answers, emitted and compiled again and compared byte for byte,
    and interpreted on fresh random inputs against a float64 reference. Claims that cannot be reproduced here, such as
    a time measured on a GPU, are listed as not checked.
    """
    claimed, folder = open_certificate(place)
    first = secrets.randbits(32) if seed is None else seed
    means = CheckOptions(resolve(solver), Budget.about(seconds), (first, first + 1))
    checks: list[Check] = []
    with _bounded(longest):
        for check in _checks(claimed, folder, means):
            checks.append(check)
            if not as_json:
                Screen().lines([f"{check.state:<12}{check.name}: {check.why}"], _STYLES[check.state])
    wrong = sum(check.state == "FAILED" for check in checks)
    left = sum(check.state == "not checked" for check in checks)
    if not as_json:
        Screen().lines([f"{len(checks) - wrong - left} ok, {wrong} FAILED, {left} not checked"])
    return Outcome(WRONG if wrong else 0, {"schema": SCHEMA, "checks": [asdict(check) for check in checks]})


def _checks(claimed: Certificate, folder: Path, means: CheckOptions) -> Iterator[Check]:
    yield from check_certificate(claimed, folder, means)
    report = check_report(claimed, folder)
    if report is not None:
        yield report


@contextmanager
def _bounded(seconds: float) -> Generator[None]:
    """Limit the time of a check, whatever the certificate's kernel does. Raises ArgusError (E933)."""
    try:
        with time_limit(seconds, "checking it", NOWHERE):
            yield
    except (ArgusError, MemoryError) as problem:
        if isinstance(problem, ArgusError) and problem.diagnostic.code != _TOO_LONG:
            raise
        why = "more memory than available" if isinstance(problem, MemoryError) else f"more than {seconds:g} s"
        message = f"checking the certificate took {why}: the checks that are not listed were not done"
        raise ArgusError(Diagnostic("E933", "error", message, help="allow more time with --longest")) from problem


_TOO_LONG = "E006"
_STYLES = {"ok": "", "FAILED": "bold red", "not checked": "magenta"}
