"""Options that several commands share."""

from __future__ import annotations

import click

from argus.core.query import NOMINAL_SECONDS
from argus.verifier.loader import SECONDS

LONGEST_SECONDS = 86_400


def positive_seconds(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if 0 < value <= LONGEST_SECONDS:
        return value
    raise click.BadParameter(f"expected a number above 0 and at most {LONGEST_SECONDS}, found {value:g}")


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
load_seconds_option = click.option(
    "--load-seconds",
    type=float,
    callback=positive_seconds,
    default=SECONDS,
    show_default=True,
    help="Limit to load the file and to trace each kernel: seconds of processor time, and of waiting.",
)
budget_option = click.option(
    "--budget",
    "seconds",
    type=click.FloatRange(0, LONGEST_SECONDS, min_open=True),
    default=NOMINAL_SECONDS,
    show_default=True,
    help="Time limit per solver query, in seconds.",
)
