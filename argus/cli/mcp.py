"""`argus mcp`: serves tools to coding agents over the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import click

from argus.cli.mcp_server import Tools, server
from argus.report.command_result import Outcome


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    default=300.0,
    show_default=True,
    help="Time limit per tool call, in seconds.",
)
@click.option("--at-once", type=click.IntRange(1, 64), default=2, show_default=True, help="Concurrent tool calls.")
def mcp(seconds: float, at_once: int) -> Outcome:
    """Serve verify, interpret, build, suggest_invariants and search_knowledge to an agent, over stdio.

    The agent's configuration starts the server (see docs/agents.md); it exits when its standard input is closed.
    """
    server(Tools(longest=seconds, at_once=at_once)).run("stdio")
    return Outcome(0, {})
