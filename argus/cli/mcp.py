"""`argus mcp`: tools for coding agents, on the standard streams."""

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
    help="Longest time for one answer.",
)
@click.option(
    "--at-once", type=click.IntRange(1, 64), default=2, show_default=True, help="Texts looked at side by side."
)
def mcp(seconds: float, at_once: int) -> Outcome:
    """Serve verify, interpret, build, suggest_invariants and search_knowledge to an agent, over stdio.

    The agent's configuration starts it; see docs/agents.md. It ends when the agent closes its standard input.
    """
    server(Tools(longest=seconds, at_once=at_once)).run("stdio")
    return Outcome(0, {})
