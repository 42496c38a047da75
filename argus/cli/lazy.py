"""Command groups that import a command only when it runs: `--help` needs only names and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click
from attrs import frozen


@frozen
class LazyCommand:
    """The module and attribute that define a command, and its line in the group's `--help`."""

    module: str
    attribute: str
    summary: str

    def load(self) -> click.Command:
        return cast(click.Command, getattr(import_module(self.module), self.attribute))


class LazyGroup(click.Group):
    """A group of `LazyCommand`s, listed in alphabetical order."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, LazyCommand], **options: Any) -> None:  # noqa: ANN401 reason: click's
        super().__init__(*arguments, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.lazy.get(cmd_name)
        return super().get_command(ctx, cmd_name) if found is None else found.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.lazy[name].summary) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
