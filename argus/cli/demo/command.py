"""`argus demo`: the command line of the demo."""

from __future__ import annotations

from pathlib import Path

import click

from argus.cli import demo as steps
from argus.cli.screen import Screen
from argus.report.command_result import Outcome


@click.command(name="demo")
@click.option("-o", "--output", default="build/demo", show_default=True, metavar="DIR", help="Output folder.")
def demo(output: str) -> Outcome:
    """Prove the shipped GEMM, refute a broken copy, interpret it, and compile it."""
    return Outcome(steps.run(Screen(), Path(output)), {})
