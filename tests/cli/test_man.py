"""The manual page has every command and option, and no text of them is a request of roff."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from argus.cli.commands import commands
from argus.cli.main import main
from argus.cli.man import page

REQUESTS = (".TH ", ".SH ", '.SS "argus ', ".PP", ".TP")


def leaves(context: click.Context) -> Iterator[click.Context]:
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        yield from leaves(below) if isinstance(command, click.Group) else [below]


def test_every_command_and_each_of_its_options_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man"]) == 0
    printed = capsys.readouterr().out
    sections = re.split(r'^\.SS "(.*)"$', printed.replace(r"\-", "-"), flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    expected = {each.command_path: each.command for each in leaves(click.Context(commands, info_name="argus"))}

    assert list(found) == list(expected)
    assert {"argus verify", "argus bench solvers", "argus man"} <= found.keys()
    for path, command in expected.items():
        options = [name for each in command.params if isinstance(each, click.Option) for name in each.opts]
        assert not [name for name in options if name not in found[path]], path
    assert ".TP\n\\fB--load-seconds FLOAT\\fR\n" in found["argus verify"]


def test_only_the_page_s_own_requests_start_a_line() -> None:
    lines = list(page(commands))

    assert not [each for each in lines if each[:1] in (".", "'") and not each.startswith(REQUESTS)]
    assert not [each for each in lines if "\n" in each]


def test_signs_of_roff_in_a_help_text_are_text() -> None:
    @click.group()
    def group() -> None:
        """A group."""

    @group.command()
    @click.option("--at", help=r"'.\n' of \"x\".")
    def odd(at: str) -> None:
        r""".TH is no request, and \fB no font."""

    lines = list(page(group))

    assert r"\&.TH is no request, and \efB no font." in lines
    assert r"\&'.\en' of \e\(dqx\e\(dq." in lines
