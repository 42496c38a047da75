"""`argus man`: prints the manual page, made from what `--help` prints.

click-man 0.6 writes a file for each command that a group has loaded; Argus loads a command when it runs, and wants one
page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from argus import __version__
from argus.cli.screen import Screen
from argus.report.command_result import EXIT_CODES, Outcome


@click.command()
def man() -> Outcome:
    """Print the manual page.

    `argus man > ~/.local/share/man/man1/argus.1` puts it where `man argus` finds it.
    """
    from argus.cli.commands import commands  # noqa: PLC0415 reason: the table of commands names this module

    Screen().lines(page(commands))
    return Outcome(0, {})


def page(commands: click.Group) -> Iterator[str]:
    """The lines of the page, in the language of man(7)."""
    top = click.Context(commands, info_name="argus", **commands.context_settings)
    summary = _sentences(commands)[0].rstrip(".")
    yield f'.TH ARGUS 1 "" "argus {__version__}" "Argus"'
    yield from (".SH NAME", rf"argus \- {_plain(summary)}", ".SH SYNOPSIS", _usage(top), ".SH OPTIONS")
    yield from _options(top)
    yield ".SH COMMANDS"
    yield from _commands(top)
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield from (".TP", str(code), _plain(f"{meaning}."))


def _commands(above: click.Context) -> Iterator[str]:
    group = above.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        if command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=above, **command.context_settings)
        if isinstance(command, click.Group):
            yield from _commands(context)
            continue
        yield f'.SS "{_plain(context.command_path)}"'
        yield _usage(context)
        for sentences in _sentences(command):
            yield from (".PP", _plain(sentences))
        yield from _options(context)


def _usage(context: click.Context) -> str:
    pieces = context.command.collect_usage_pieces(context)
    return rf"\fB{_plain(context.command_path)}\fR {_plain(' '.join(pieces))}"


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", rf"\fB{_plain(record[0])}\fR", _plain(record[1]))


def _sentences(command: click.Command) -> list[str]:
    """The paragraphs of a command's help."""
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", command.help or "")]


def _plain(text: str) -> str:
    """Text in which nothing is a request or an escape of roff, and every hyphen can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped
