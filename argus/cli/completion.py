"""`argus completion`: prints the script that lets a shell complete commands, options and files."""

from __future__ import annotations

from typing import Literal

import click
from click.shell_completion import get_completion_class

from argus.cli.screen import Screen
from argus.report.command_result import Outcome

Shell = Literal["bash", "zsh", "fish"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: Shell) -> Outcome:
    """Print the completion script of a shell.

    Load it at start: `argus completion bash > ~/.argus-complete`, and `. ~/.argus-complete` in the shell's start file.
    """
    from argus.cli.commands import commands  # noqa: PLC0415 reason: the table of commands names this module

    kind = get_completion_class(shell)
    assert kind is not None
    Screen().lines([kind(commands, {}, "argus", "_ARGUS_COMPLETE").source().rstrip()])
    return Outcome(0, {})
